//! Whose turn it is: results are made for members in turn, and none of them takes the time of all.

use std::time::Duration;

/// The time of each member in a pass.
pub(crate) struct Turns {
    /// What one ask may take, and all asks of a member together before others of it are left to the next pass.
    most: Option<Duration>,
    spent: Vec<Duration>,
}

impl Turns {
    pub fn new(most: Option<Duration>, members: usize) -> Self {
        Self { most, spent: vec![Duration::ZERO; members] }
    }

    /// Whether one of these members has time left.
    pub fn may(&self, members: &[usize]) -> bool {
        let left = |&member: &usize| self.most.is_none_or(|most| self.spent[member] < most);
        members.iter().any(left)
    }

    /// Notes what was done for members, each of whom would have taken as long alone.
    pub fn charge(&mut self, members: &[usize], time: Duration) {
        members.iter().for_each(|&member| self.spent[member] = self.spent[member].saturating_add(time));
    }
}

/// The numbers of what is done for members, those that have the same member in their order: first one for each member, then a
/// second one for each, and so on.
pub(crate) fn in_turn(members: &[usize]) -> Vec<usize> {
    let mut counts = vec![0_usize; members.iter().max().map_or(0, |most| most + 1)];
    let mut round = |member: usize| {
        counts[member] += 1;
        counts[member]
    };
    let mut order: Vec<(usize, usize)> =
        members.iter().enumerate().map(|(number, &member)| (round(member), number)).collect();
    order.sort_unstable();
    order.into_iter().map(|(_, number)| number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_each_member_comes_before_the_second_of_any() {
        assert_eq!(in_turn(&[0, 0, 0, 1, 2, 2]), [0, 3, 4, 1, 5, 2]);
        assert_eq!(in_turn(&[]), [0; 0]);
    }

    #[test]
    fn who_took_the_time_of_an_ask_waits_and_holds_up_nobody() {
        let second = Duration::from_secs(1);
        let mut turns = Turns::new(Some(second), 3);
        turns.charge(&[0, 1], second / 2);
        assert!(turns.may(&[0]) && turns.may(&[1]));
        turns.charge(&[0], second / 2);
        assert!(!turns.may(&[0]) && turns.may(&[1]) && turns.may(&[0, 2]));
        let mut free = Turns::new(None, 1);
        free.charge(&[0], Duration::MAX);
        free.charge(&[0], second);
        assert!(free.may(&[0]));
    }
}

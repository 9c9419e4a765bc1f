//! When a request is repeated, and after how long.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, SystemTime};

use http::StatusCode;

/// The first wait; it doubles with every attempt.
const FIRST: Duration = Duration::from_millis(100);
/// No wait is longer, whatever a server asks by Retry-After.
const LONGEST: Duration = Duration::from_secs(20);

/// Whether a server that answers so may answer otherwise soon: time-outs, too many requests, troubles of its own
/// (RFC 9110, section 15; RFC 6585 for 429), but not what it will never do (501, 505).
pub(crate) fn may_pass(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 425 | 429)
        || (status.is_server_error() && !matches!(status.as_u16(), 501 | 505))
}

/// The wait before attempt `attempt + 1`: exponential with "equal jitter", so that many clients that failed together
/// do not come again together; at least what the server asked for, within bounds.
pub(crate) fn wait(attempt: u32, asked: Option<Duration>) -> Duration {
    let most = FIRST.saturating_mul(1 << attempt.saturating_sub(1).min(10)).min(LONGEST);
    let jitter = most.mul_f64(0.5 + 0.5 * random());
    jitter.max(asked.unwrap_or_default()).min(LONGEST)
}

/// A number from 0 to 1. The standard library seeds its hashers at random, which is all the chance needed here.
fn random() -> f64 {
    RandomState::new().build_hasher().finish() as f64 / u64::MAX as f64
}

/// Retry-After: seconds or a date (RFC 9110, section 10.2.3).
pub(crate) fn retry_after(value: &str) -> Option<Duration> {
    if let Ok(seconds) = value.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(value.trim()).ok()?;
    Some(date.duration_since(SystemTime::now()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_are_bounded() {
        for attempt in 1..40 {
            let w = wait(attempt, None);
            let most = Duration::from_millis(100 << (attempt - 1).min(10)).min(LONGEST);
            assert!(w >= most / 2 && w <= most, "{attempt}: {w:?}");
        }
        assert!(wait(1, Some(Duration::from_secs(3))) >= Duration::from_secs(3));
        assert_eq!(wait(1, Some(Duration::from_secs(1 << 40))), LONGEST);
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        assert_eq!(retry_after(" 7 "), Some(Duration::from_secs(7)));
        assert_eq!(retry_after("Mon, 01 Jan 1990 00:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!(retry_after("soon"), None);
    }

    #[test]
    fn only_what_may_pass_is_repeated() {
        let passing: Vec<u16> =
            (100..600).filter(|&s| may_pass(StatusCode::from_u16(s).unwrap())).filter(|s| *s < 506).collect();
        assert_eq!(passing, [408, 425, 429, 500, 502, 503, 504]);
    }
}

//! Bytes on their way: many threads may wait for them, one fetches.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

use sieva_types::{Error, ErrorKind, Result};

/// What a request will bring.
#[derive(Debug, Default)]
pub(crate) struct Flight {
    landed: Mutex<Option<Result<Arc<Vec<u8>>>>>,
    news: Condvar,
}

impl Flight {
    pub(crate) fn ready(bytes: Arc<Vec<u8>>) -> Arc<Self> {
        Arc::new(Self { landed: Mutex::new(Some(Ok(bytes))), news: Condvar::new() })
    }

    pub(crate) fn is_done(&self) -> bool {
        self.landed.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Waits for the bytes.
    pub(crate) fn wait(&self) -> Result<Arc<Vec<u8>>> {
        let mut landed = self.landed.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(outcome) = &*landed {
                return outcome.clone();
            }
            landed = self.news.wait(landed).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn land(&self, outcome: Result<Arc<Vec<u8>>>) {
        let mut landed = self.landed.lock().unwrap_or_else(PoisonError::into_inner);
        if landed.is_none() {
            *landed = Some(outcome);
        }
        self.news.notify_all();
    }
}

/// The duty to end a flight. One that is dropped ends it with an error, so that nobody waits for ever.
#[derive(Debug)]
pub(crate) struct Promise(Arc<Flight>);

impl Promise {
    pub(crate) fn new() -> (Self, Arc<Flight>) {
        let flight = Arc::new(Flight::default());
        (Self(Arc::clone(&flight)), flight)
    }

    pub(crate) fn keep(self, outcome: Result<Vec<u8>>) {
        self.0.land(outcome.map(Arc::new));
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        self.0.land(Err(Error::new(ErrorKind::Internal, "a network task was lost")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_who_wait_get_the_bytes_and_a_lost_task_is_told() {
        let (promise, flight) = Promise::new();
        let waiting: Vec<_> = (0..4)
            .map(|_| {
                let flight = Arc::clone(&flight);
                std::thread::spawn(move || flight.wait())
            })
            .collect();
        promise.keep(Ok(vec![1, 2]));
        for thread in waiting {
            assert_eq!(*thread.join().unwrap().unwrap(), [1, 2]);
        }
        let (promise, flight) = Promise::new();
        drop(promise);
        assert_eq!(flight.wait().unwrap_err().kind(), ErrorKind::Internal);
    }
}

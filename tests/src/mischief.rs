//! Troubles of every kind for the requests through a proxy, and how often each of them fired.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use firn_test_support::{Proxy, Trouble};

use crate::random::Random;

/// The kinds, as a failed test names them.
const KINDS: [&str; 7] = [CONFLICT, "lost answer", "replay", "delay", "429", "500", "503"];
const CONFLICT: &str = "409";
const DELAY: Duration = Duration::from_millis(700);

/// Which requests a server may answer with 409, and by what code. A 409 says what holds until somebody acts, so it is not answered to
/// whatever comes.
#[derive(Debug, Clone, Copy)]
pub struct Conflicts {
    /// Azure's code of the answer.
    pub code: &'static str,
    /// By method and path.
    pub on: fn(&str, &str) -> bool,
}

/// What a proxy does to the requests through it, until [`Mischief::end`].
#[derive(Debug)]
pub struct Mischief<'a> {
    proxy: &'a Proxy,
    fired: Arc<Mutex<[u64; KINDS.len()]>>,
}

impl<'a> Mischief<'a> {
    /// Troubles one request in `one_in`, each time by the kind that fired least of those that fit. The first request that may be answered
    /// with 409 is: there are few of them.
    pub fn begin(proxy: &'a Proxy, one_in: u64, conflicts: Conflicts) -> Mischief<'a> {
        let fired = Arc::new(Mutex::new([0; KINDS.len()]));
        let (random, counts) = (Mutex::new(Random::seeded()), fired.clone());
        proxy.trouble(Some(Box::new(move |_, method, path| {
            let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
            let fits = |kind: &usize| KINDS[*kind] != CONFLICT || (conflicts.on)(method, path);
            let first = (0..KINDS.len()).any(|kind| KINDS[kind] == CONFLICT && counts[kind] == 0 && fits(&kind));
            if !first && random.lock().unwrap_or_else(PoisonError::into_inner).below(one_in) > 0 {
                return None;
            }
            let kind = (0..KINDS.len()).filter(fits).min_by_key(|kind| counts[*kind])?;
            counts[kind] += 1;
            Some(match KINDS[kind] {
                "lost answer" => Trouble::LostAnswer,
                "replay" => Trouble::Replay,
                "delay" => Trouble::Delay(DELAY),
                CONFLICT => Trouble::Refusal("409 Conflict", conflicts.code),
                "429" => Trouble::Refusal("429 Too Many Requests", "TooManyRequests"),
                "500" => Trouble::Refusal("500 Internal Server Error", "InternalError"),
                _ => Trouble::Refusal("503 Service Unavailable", "ServerBusy"),
            })
        })));
        Mischief { proxy, fired }
    }

    /// How often each kind fired.
    pub fn fired(&self) -> Vec<(&'static str, u64)> {
        let counts = *self.fired.lock().unwrap_or_else(PoisonError::into_inner);
        KINDS.into_iter().zip(counts).collect()
    }

    /// Whether every kind fired.
    pub fn is_complete(&self) -> bool {
        self.fired().iter().all(|(_, count)| *count > 0)
    }

    /// Passes everything on from now.
    pub fn end(&self) {
        self.proxy.trouble(None);
    }
}

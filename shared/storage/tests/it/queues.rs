//! What every queue promises, as plain async functions over one [`QueueCase`]; run on memory and Azurite.

use std::time::Duration;

use chrono::{TimeDelta, Utc};
use firn_storage::azure::{AzureQueue, ConnectionString};
use firn_storage::{AzureOptions, Clock, Deleted, MemoryQueue, Queue, QueueError, RetryPolicy, SendOptions};
use firn_test_support::Azurite;
use firn_test_support::azurite::{ACCOUNT, ACCOUNT_KEY};

use crate::stub::{Answer, Request, Stub, status};

const MINUTE: Duration = Duration::from_secs(60);

struct QueueCase {
    queue: Box<dyn Queue>,
    /// None: real time has to pass.
    clock: Option<Clock>,
}

impl QueueCase {
    async fn created(self) -> Self {
        self.queue.create().await.unwrap();
        self
    }

    async fn send(&self, text: &str) -> String {
        self.queue.send(text, &SendOptions::default()).await.unwrap()
    }

    async fn pass(&self, seconds: u64) {
        let time = Duration::from_secs(seconds);
        match &self.clock {
            Some(clock) => clock.advance(time),
            None => tokio::time::sleep(time).await,
        }
    }

    async fn texts(&self) -> Vec<String> {
        let received = self.queue.receive(32, MINUTE).await.unwrap();
        received.into_iter().map(|message| message.text).collect()
    }
}

async fn a_queue_is_created_once_and_fine_when_it_is_there(case: QueueCase) {
    let gone = QueueError::NotFound { queue: case.queue.name().into() };
    assert_eq!(case.queue.send("x", &SendOptions::default()).await, Err(gone.clone()));
    assert_eq!(case.queue.receive(1, MINUTE).await, Err(gone.clone()));
    assert_eq!(case.queue.peek(1).await, Err(gone.clone()));
    assert_eq!(case.queue.length().await, Err(gone.clone()));
    assert!(!gone.is_retryable());
    case.queue.create().await.unwrap();
    case.queue.create().await.unwrap();
    assert_eq!(case.queue.length().await, Ok(0));
    assert_eq!(case.queue.receive(1, MINUTE).await, Ok(vec![]));
    assert_eq!(case.queue.peek(32).await, Ok(vec![]));
}

async fn what_is_received_is_hidden_and_counted(case: QueueCase) {
    let case = case.created().await;
    let id = case.send("first").await;
    let peeked = case.queue.peek(32).await.unwrap();
    assert_eq!(peeked.len(), 1);
    assert_eq!((&peeked[0].id, peeked[0].text.as_str(), peeked[0].dequeue_count), (&id, "first", 0));

    let received = case.queue.receive(32, Duration::from_secs(2)).await.unwrap();
    let [message] = &received[..] else { panic!("{received:?}") };
    assert_eq!((&message.id, message.text.as_str(), message.dequeue_count), (&id, "first", 1));
    assert!(message.inserted < message.next_visible && message.next_visible < message.expires, "{message:?}");
    let week = message.expires - message.inserted;
    assert!((week - TimeDelta::days(7)).abs() < TimeDelta::minutes(1), "{message:?}");
    assert_eq!(case.queue.receive(32, MINUTE).await, Ok(vec![]));
    assert_eq!(case.queue.peek(32).await, Ok(vec![]));
    // Hidden ones count.
    assert_eq!(case.queue.length().await, Ok(1));

    case.pass(3).await;
    let again = case.queue.receive(1, MINUTE).await.unwrap().remove(0);
    assert_eq!((&again.id, again.dequeue_count), (&id, 2));
    assert_ne!(again.pop_receipt, message.pop_receipt);
    assert_eq!(case.queue.delete(&id, &again.pop_receipt).await, Ok(Deleted::Deleted));
    assert_eq!(case.queue.delete(&id, &again.pop_receipt).await, Ok(Deleted::Absent));
    assert_eq!(case.queue.length().await, Ok(0));
}

async fn a_message_can_be_sent_hidden_and_for_a_time(case: QueueCase) {
    let case = case.created().await;
    let seconds = |seconds| Duration::from_secs(seconds);
    let options = |hidden, life| SendOptions { hidden_for: seconds(hidden), time_to_live: Some(seconds(life)) };
    case.queue.send("later", &options(3, 900)).await.unwrap();
    case.queue.send("short", &options(0, 2)).await.unwrap();
    assert_eq!(case.queue.peek(32).await.unwrap().len(), 1);
    assert_eq!(case.queue.length().await, Ok(2));
    case.pass(4).await;
    let received = case.queue.receive(32, MINUTE).await.unwrap();
    let [message] = &received[..] else { panic!("{received:?}") };
    assert_eq!(message.text, "later");
    assert_eq!((message.expires - message.inserted).num_seconds(), 900);
    for wrong in [options(5, 5), options(0, 0), options(8 * 24 * 3600, 9 * 24 * 3600)] {
        let error = case.queue.send("x", &wrong).await.unwrap_err();
        assert!(matches!(error, QueueError::Other { .. }), "{error:?}");
    }
}

async fn an_update_changes_receipt_visibility_and_text(case: QueueCase) {
    let case = case.created().await;
    let id = case.send("before").await;
    let message = case.queue.receive(1, MINUTE).await.unwrap().remove(0);
    let kept = case.queue.update(&id, &message.pop_receipt, None, MINUTE).await.unwrap();
    assert_ne!(kept, message.pop_receipt);
    assert_eq!(case.queue.receive(1, MINUTE).await, Ok(vec![]));
    let shown = case.queue.update(&id, &kept, Some("after <&> \u{e9}"), Duration::ZERO).await.unwrap();
    assert_ne!(shown, kept);
    let again = case.queue.receive(1, MINUTE).await.unwrap().remove(0);
    assert_eq!((again.text.as_str(), again.dequeue_count, again.inserted), ("after <&> \u{e9}", 2, message.inserted));
    let shown = case.queue.update(&id, &again.pop_receipt, None, Duration::ZERO).await.unwrap();
    let last = case.queue.receive(1, MINUTE).await.unwrap().remove(0);
    assert_eq!(last.text, "after <&> \u{e9}", "kept when no text is given");
    // A receipt that is not the last one.
    let stale = QueueError::Stale { queue: case.queue.name().into(), id: id.clone() };
    assert_eq!(case.queue.update(&id, &shown, None, MINUTE).await, Err(stale.clone()));
    assert_eq!(case.queue.delete(&id, &shown).await, Err(stale.clone()));
    assert_eq!(case.queue.delete(&id, &message.pop_receipt).await, Err(stale.clone()));
    assert_eq!(case.queue.length().await, Ok(1));
    assert_eq!(case.queue.delete(&id, &last.pop_receipt).await, Ok(Deleted::Deleted));
    assert_eq!(case.queue.update(&id, &last.pop_receipt, None, MINUTE).await, Err(stale));
}

async fn many_messages_come_in_batches(case: QueueCase) {
    let case = case.created().await;
    for number in 0..35 {
        case.send(&format!("m{number}")).await;
    }
    assert_eq!(case.queue.length().await, Ok(35));
    assert_eq!(case.queue.peek(100).await.unwrap().len(), 32);
    assert_eq!(case.queue.receive(2, MINUTE).await.unwrap().len(), 2);
    let mut rest = case.queue.receive(100, MINUTE).await.unwrap();
    assert_eq!(rest.len(), 32);
    rest.extend(case.queue.receive(100, MINUTE).await.unwrap());
    let texts: std::collections::BTreeSet<_> = rest.into_iter().map(|message| message.text).collect();
    assert_eq!(texts.len(), 33, "each once");
}

async fn any_text_goes_the_whole_way(case: QueueCase) {
    let case = case.created().await;
    for text in [
        "",
        " ",
        r#"{"v":1,"dataset":"a&b <c> \"d\" 'e'","partition":{"day":"2026-11-01"}}"#,
        "]]> <![CDATA[x]]> &amp; &#10; <!-- x -->",
        "  leading and trailing \t ",
        "line\nline\r\nline\r\n",
        "\n",
        "Ærø 北京 🧊 \u{feff}\u{202e}\u{85}\u{2028}",
        "eyJ2IjoxfQ==\n",
    ] {
        let id = case.send(text).await;
        let peeked = case.queue.peek(1).await.unwrap().remove(0);
        assert_eq!(peeked.text, text);
        let message = case.queue.receive(1, MINUTE).await.unwrap().remove(0);
        assert_eq!(message.text, text);
        let receipt = case.queue.update(&id, &message.pop_receipt, Some(text), Duration::ZERO).await.unwrap();
        assert_eq!(case.queue.peek(1).await.unwrap()[0].text, text);
        assert_eq!(case.queue.delete(&id, &receipt).await, Ok(Deleted::Deleted));
    }
    for control in ["a\u{0}", "\u{1b}[0m", "\u{ffff}"] {
        let error = case.queue.send(control, &SendOptions::default()).await.unwrap_err();
        assert!(matches!(error, QueueError::Other { .. }), "{error:?}");
    }
}

async fn a_message_has_at_most_64_kib(case: QueueCase) {
    let case = case.created().await;
    let most = "x".repeat(64 << 10);
    case.send(&most).await;
    assert!(case.texts().await == [most.clone()]);
    let error = case.queue.send(&(most + "é"), &SendOptions::default()).await.unwrap_err();
    assert_eq!(error, QueueError::TooLarge { queue: case.queue.name().into(), bytes: (64 << 10) + 2 });
    assert!(!error.is_retryable());
}

macro_rules! queue_tests {
    ($module:ident, $case:expr) => {
        mod $module {
            queue_tests!($case;
                a_queue_is_created_once_and_fine_when_it_is_there, what_is_received_is_hidden_and_counted,
                a_message_can_be_sent_hidden_and_for_a_time, an_update_changes_receipt_visibility_and_text,
                many_messages_come_in_batches, any_text_goes_the_whole_way, a_message_has_at_most_64_kib,
            );
        }
    };
    ($case:expr; $($name:ident,)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name($case).await;
            }
        )*
    };
}

queue_tests!(memory, super::in_memory());
queue_tests!(azure, super::in_azurite());

fn in_memory() -> QueueCase {
    let clock = Clock::manual(Utc::now());
    QueueCase { queue: Box::new(MemoryQueue::with_clock("firn-compact", clock.clone())), clock: Some(clock) }
}

fn unique_name() -> String {
    let file = tempfile::Builder::new().rand_bytes(12).tempfile().unwrap();
    let name = file.path().file_name().unwrap().to_str().unwrap().to_ascii_lowercase();
    let unique: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    format!("q-{unique}")
}

fn in_azurite() -> QueueCase {
    let connection = ConnectionString::parse(&Azurite::shared().connection_string()).unwrap();
    QueueCase { queue: Box::new(AzureQueue::open(&connection, &unique_name()).unwrap()), clock: None }
}

/// A queue of Azurite behind a server that answers by script.
async fn scripted(script: impl Fn(usize, &Request) -> Answer + Send + Sync + 'static) -> (Stub, AzureQueue) {
    let stub = Stub::start(script).await;
    let endpoint = format!("http://127.0.0.1:{}/{ACCOUNT}", stub.port);
    let text = format!(
        "AccountName={ACCOUNT};AccountKey={ACCOUNT_KEY};BlobEndpoint=http://127.0.0.1:1/{ACCOUNT};QueueEndpoint={endpoint}"
    );
    let retry = RetryPolicy { first_delay: Duration::from_millis(1), tries: 3, ..RetryPolicy::default() };
    let options = AzureOptions { retry, ..AzureOptions::default() };
    let queue = AzureQueue::open_with(&ConnectionString::parse(&text).unwrap(), &unique_name(), &options).unwrap();
    (stub, queue)
}

#[tokio::test]
async fn a_busy_service_is_asked_again_and_named_when_it_stays_busy() {
    let port = Azurite::shared().queue_port();
    let (stub, queue) = scripted(move |at, _| if at < 2 { status(503) } else { Answer::Forward(port) }).await;
    queue.create().await.unwrap();
    assert_eq!(stub.requests().len(), 3);
    let (stub, queue) = scripted(|_, _| status(503)).await;
    let error = queue.length().await.unwrap_err();
    assert!(matches!(error, QueueError::Throttled { .. }) && error.is_retryable(), "{error:?}");
    assert!(error.to_string().contains("after 3 tries"), "{error}");
    assert_eq!(stub.requests().len(), 3);
    let (_stub, queue) = scripted(|_, _| status(500)).await;
    assert!(matches!(queue.receive(1, MINUTE).await, Err(QueueError::Unavailable { .. })));
}

#[tokio::test]
async fn a_send_whose_answer_is_lost_arrives_at_least_once() {
    let port = Azurite::shared().queue_port();
    let lost = std::sync::atomic::AtomicBool::new(false);
    let (_stub, queue) = scripted(move |_, request| {
        let first = request.method == "POST" && !lost.swap(true, std::sync::atomic::Ordering::SeqCst);
        if first { Answer::Lose(port) } else { Answer::Forward(port) }
    })
    .await;
    queue.create().await.unwrap();
    queue.send("twice", &SendOptions::default()).await.unwrap();
    assert_eq!(queue.length().await, Ok(2));
}

#[tokio::test]
async fn a_delete_whose_answer_is_lost_is_a_delete() {
    let port = Azurite::shared().queue_port();
    let lost = std::sync::atomic::AtomicBool::new(false);
    let (_stub, queue) = scripted(move |_, request| {
        let first = request.method == "DELETE" && !lost.swap(true, std::sync::atomic::Ordering::SeqCst);
        if first { Answer::Lose(port) } else { Answer::Forward(port) }
    })
    .await;
    queue.create().await.unwrap();
    let id = queue.send("once", &SendOptions::default()).await.unwrap();
    let message = queue.receive(1, MINUTE).await.unwrap().remove(0);
    assert_eq!(queue.delete(&id, &message.pop_receipt).await, Ok(Deleted::Deleted));
    assert_eq!(queue.length().await, Ok(0));
}

#[tokio::test]
async fn a_wrong_key_is_denied_and_not_shown() {
    let key = "d3JvbmcgIGtleSB3cm9uZyBrZXkgd3Jvbmcga2V5";
    let port = Azurite::shared().queue_port();
    let text = format!(
        "AccountName={ACCOUNT};AccountKey={key};BlobEndpoint=http://127.0.0.1:1/{ACCOUNT};\
         QueueEndpoint=http://127.0.0.1:{port}/{ACCOUNT}"
    );
    let queue = AzureQueue::open(&ConnectionString::parse(&text).unwrap(), "firn-compact").unwrap();
    let error = queue.length().await.unwrap_err();
    assert!(matches!(error, QueueError::Denied { .. }) && !error.to_string().contains(key), "{error:?}");
    assert!(!format!("{queue:?}").contains(key));
}

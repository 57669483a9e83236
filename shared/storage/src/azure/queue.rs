//! A queue of Azure Queue Storage.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use azure_core::http::{Body, RequestContent, Url, XmlFormat};
use azure_storage_queue::models::{
    QueueClientGetPropertiesResultHeaders, QueueClientPeekMessagesOptions, QueueClientReceiveMessagesOptions,
    QueueClientSendMessageOptions, QueueClientUpdateMessageOptions, QueueMessage as SdkMessage,
};
use azure_storage_queue::{QueueClient, QueueClientOptions};
use percent_encoding::utf8_percent_encode;

use super::client::{SEGMENT, client_options, service_version};
use super::{AzureAccount, AzureOptions, ConnectionError, signing, time};
use crate::queue::{
    DEFAULT_TIME_TO_LIVE, MAX_BATCH, PeekedMessage, Queue, QueueError, QueueMessage, SendOptions, check_text,
    check_times,
};
use crate::retry::{Failure, GaveUp, Reached, RetryPolicy};
use crate::store::Deleted;

/// A queue of a storage account. Clones share connections.
#[derive(Debug, Clone)]
pub struct AzureQueue {
    inner: Arc<Inner>,
}

struct Inner {
    name: String,
    endpoint: String,
    client: QueueClient,
    retry: RetryPolicy,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at {}", self.name, self.endpoint)
    }
}

impl AzureQueue {
    /// The queue of this name in an account. Nothing is sent yet.
    ///
    /// # Errors
    /// [`ConnectionError`]: the account tells no queue endpoint, or the machine allows no HTTP client.
    pub fn open(account: &AzureAccount, name: &str) -> Result<AzureQueue, ConnectionError> {
        Self::open_with(account, name, &AzureOptions::default())
    }

    /// The same with other time-outs and retries.
    ///
    /// # Errors
    /// As [`AzureQueue::open`].
    pub fn open_with(
        account: &AzureAccount,
        name: &str,
        options: &AzureOptions,
    ) -> Result<AzureQueue, ConnectionError> {
        let endpoint = account.queue_endpoint()?;
        let failed = |reason: String| ConnectionError::Endpoint {
            setting: "QueueEndpoint",
            endpoint: endpoint.clone(),
            reason: format!("queue `{name}`: {reason}"),
        };
        if !is_queue_name(name) {
            return Err(failed("a queue has 3 to 63 small letters, digits and single hyphens".into()));
        }
        let url = Url::parse(&format!("{endpoint}/{}", utf8_percent_encode(name, SEGMENT)))
            .map_err(|error| failed(error.to_string()))?;
        let mut sdk = QueueClientOptions {
            client_options: client_options(signing::queue_steps(account), &endpoint, options)?,
            ..QueueClientOptions::default()
        };
        if let Some(version) = service_version(account, options) {
            sdk.version = version;
        }
        let client = QueueClient::new(url, None, Some(sdk)).map_err(|error| failed(crate::error::chain(&error)))?;
        let inner = Inner { name: name.into(), endpoint, client, retry: options.retry.clone() };
        Ok(AzureQueue { inner: Arc::new(inner) })
    }

    async fn call<T, F>(&self, doing: &str, mut attempt: impl FnMut() -> F) -> Result<T, GaveUp>
    where
        F: Future<Output = azure_core::Result<T>>,
    {
        let retry = &self.inner.retry;
        let attempt = || {
            let attempt = attempt();
            retry.timed(0, async { attempt.await.map_err(|error| Failure::of(&error)) })
        };
        retry.run(doing, &self.inner.name, attempt).await
    }

    /// The error for the caller of a call that was given up. `message` is the id of the one concerned.
    fn error(&self, message: &str, gave_up: GaveUp) -> QueueError {
        let detail = gave_up.detail(&self.inner.endpoint);
        queue_error(&self.inner.name, message, &gave_up.failure, detail)
    }
}

fn queue_error(queue: &str, message: &str, failure: &Failure, detail: String) -> QueueError {
    let queue = queue.to_owned();
    match (failure.status, failure.code.as_deref().unwrap_or_default()) {
        (Some(404), "MessageNotFound") | (Some(400 | 404), "PopReceiptMismatch") => {
            QueueError::Stale { queue, id: message.into() }
        }
        (Some(404), _) => QueueError::NotFound { queue },
        (Some(401 | 403), _) => QueueError::Denied { queue, detail },
        (Some(429 | 503), _) => QueueError::Throttled { queue, detail },
        _ if failure.reached == Reached::Final => QueueError::Other { queue, detail },
        _ => QueueError::Unavailable { queue, detail },
    }
}

fn is_queue_name(name: &str) -> bool {
    let allowed = |at: u8| at.is_ascii_lowercase() || at.is_ascii_digit() || at == b'-';
    (3..=63).contains(&name.len())
        && name.bytes().all(allowed)
        && !name.contains("--")
        && !name.starts_with('-')
        && !name.ends_with('-')
}

/// The message in XML. White space is written as references: a parser may change line ends and cut blanks off otherwise.
fn body(text: &str) -> RequestContent<SdkMessage, XmlFormat> {
    let mut xml = String::with_capacity(text.len() + 128);
    xml.push_str("<?xml version=\"1.0\" encoding=\"utf-8\"?><QueueMessage><MessageText>");
    for at in text.chars() {
        match at {
            '&' => xml.push_str("&amp;"),
            '<' => xml.push_str("&lt;"),
            '>' => xml.push_str("&gt;"),
            '\t' => xml.push_str("&#9;"),
            '\n' => xml.push_str("&#10;"),
            '\r' => xml.push_str("&#13;"),
            ' ' => xml.push_str("&#32;"),
            other => xml.push(other),
        }
    }
    xml.push_str("</MessageText></QueueMessage>");
    Body::from(xml).into()
}

/// Whole seconds, rounded up: what is to be hidden for half a second must not show at once.
fn seconds(time: Duration) -> i32 {
    let rounded = time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0));
    i32::try_from(rounded).unwrap_or(i32::MAX)
}

fn count(max: usize) -> Option<i32> {
    Some(max.clamp(1, MAX_BATCH) as i32)
}

#[async_trait]
impl Queue for AzureQueue {
    fn name(&self) -> &str {
        &self.inner.name
    }

    async fn create(&self) -> Result<(), QueueError> {
        let created = self.call("create queue", || async { self.inner.client.create(None).await.map(|_| ()) }).await;
        match created {
            // With other metadata than ours, which has none.
            Err(gave_up) if gave_up.failure.has_code("QueueAlreadyExists") => Ok(()),
            result => result.map_err(|gave_up| self.error("", gave_up)),
        }
    }

    async fn send(&self, text: &str, options: &SendOptions) -> Result<String, QueueError> {
        check_text(&self.inner.name, text)?;
        let life = options.time_to_live.unwrap_or(DEFAULT_TIME_TO_LIVE);
        check_times(&self.inner.name, options.hidden_for, life)?;
        let attempt = || async {
            let sdk = QueueClientSendMessageOptions {
                message_time_to_live: Some(seconds(life)),
                visibility_timeout: Some(seconds(options.hidden_for)),
                ..Default::default()
            };
            let answer = self.inner.client.send_message(body(text), Some(sdk)).await?;
            answer.into_model()?.into_message()
        };
        let sent = self.call("send message", attempt).await.map_err(|gave_up| self.error("", gave_up))?;
        Ok(sent.message_id.unwrap_or_default())
    }

    async fn receive(&self, max: usize, visibility: Duration) -> Result<Vec<QueueMessage>, QueueError> {
        let attempt = || async {
            let sdk = QueueClientReceiveMessagesOptions {
                number_of_messages: count(max),
                visibility_timeout: Some(seconds(visibility).max(1)),
                ..Default::default()
            };
            self.inner.client.receive_messages(Some(sdk)).await?.into_model()
        };
        let received = self.call("receive messages", attempt).await.map_err(|gave_up| self.error("", gave_up))?;
        let message = |found: azure_storage_queue::models::ReceivedMessage| QueueMessage {
            id: found.message_id.unwrap_or_default(),
            pop_receipt: found.pop_receipt.unwrap_or_default(),
            text: found.message_text.unwrap_or_default(),
            dequeue_count: found.dequeue_count.unwrap_or_default().try_into().unwrap_or_default(),
            inserted: time(found.insertion_time),
            expires: time(found.expiration_time),
            next_visible: time(found.time_next_visible),
        };
        Ok(received.items.unwrap_or_default().into_iter().map(message).collect())
    }

    async fn peek(&self, max: usize) -> Result<Vec<PeekedMessage>, QueueError> {
        let attempt = || async {
            let sdk = QueueClientPeekMessagesOptions { number_of_messages: count(max), ..Default::default() };
            self.inner.client.peek_messages(Some(sdk)).await?.into_model()
        };
        let peeked = self.call("peek messages", attempt).await.map_err(|gave_up| self.error("", gave_up))?;
        let message = |found: azure_storage_queue::models::PeekedMessage| PeekedMessage {
            id: found.message_id.unwrap_or_default(),
            text: found.message_text.unwrap_or_default(),
            dequeue_count: found.dequeue_count.unwrap_or_default().try_into().unwrap_or_default(),
            inserted: time(found.insertion_time),
            expires: time(found.expiration_time),
        };
        Ok(peeked.items.unwrap_or_default().into_iter().map(message).collect())
    }

    async fn update(
        &self,
        id: &str,
        receipt: &str,
        text: Option<&str>,
        visibility: Duration,
    ) -> Result<String, QueueError> {
        if let Some(text) = text {
            check_text(&self.inner.name, text)?;
        }
        let attempt = || async {
            let sdk = QueueClientUpdateMessageOptions { queue_message: text.map(body), ..Default::default() };
            let answer = self.inner.client.update_message(id, receipt, seconds(visibility), Some(sdk)).await?;
            answer.headers().get_as::<String, std::convert::Infallible>(&"x-ms-popreceipt".into())
        };
        self.call("update message", attempt).await.map_err(|gave_up| self.error(id, gave_up))
    }

    async fn delete(&self, id: &str, receipt: &str) -> Result<Deleted, QueueError> {
        let attempt = || async { self.inner.client.delete_message(id, receipt, None).await.map(|_| ()) };
        match self.call("delete message", attempt).await {
            Ok(()) => Ok(Deleted::Deleted),
            Err(gave_up) if gave_up.failure.has_code("MessageNotFound") => {
                // A try whose answer was lost may be the one that removed it.
                Ok(if gave_up.perhaps_done { Deleted::Deleted } else { Deleted::Absent })
            }
            Err(gave_up) => Err(self.error(id, gave_up)),
        }
    }

    async fn length(&self) -> Result<u64, QueueError> {
        let attempt = || async { self.inner.client.get_properties(None).await?.approximate_messages_count() };
        let count = self.call("read queue", attempt).await.map_err(|gave_up| self.error("", gave_up))?;
        Ok(count.unwrap_or_default().try_into().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_what_the_caller_does_next() {
        let error = |status, code: &str, reached| {
            let failure = Failure { reached, status: Some(status), code: Some(code.into()), detail: String::new() };
            queue_error("q", "7", &failure, String::new())
        };
        let lasting = |status, code| error(status, code, Reached::Final);
        let stale = || QueueError::Stale { queue: "q".into(), id: "7".into() };
        assert_eq!(lasting(404, "MessageNotFound"), stale());
        assert_eq!(lasting(400, "PopReceiptMismatch"), stale());
        assert_eq!(lasting(404, "QueueNotFound"), QueueError::NotFound { queue: "q".into() });
        assert!(matches!(lasting(403, "AuthenticationFailed"), QueueError::Denied { .. }));
        assert!(matches!(lasting(409, "QueueBeingDeleted"), QueueError::Other { .. }));
        let busy = error(503, "ServerBusy", Reached::Refused { retry_after: None });
        assert!(matches!(busy, QueueError::Throttled { .. }) && busy.is_retryable());
        assert!(matches!(error(500, "InternalError", Reached::Perhaps), QueueError::Unavailable { .. }));
    }

    #[test]
    fn names_that_no_queue_can_have_are_refused_before_anything_is_sent() {
        let connection = crate::ConnectionString::parse("UseDevelopmentStorage=true").unwrap();
        for name in ["firn-compact", "abc", "a1-b2-c3"] {
            assert_eq!(AzureQueue::open(&connection, name).unwrap().name(), name);
        }
        for name in ["", "ab", "Firn", "a--b", "-ab", "ab-", "a/b", "a.b", &"a".repeat(64)] {
            let error = AzureQueue::open(&connection, name).unwrap_err().to_string();
            assert!(error.contains(&format!("queue `{name}`")), "{error}");
        }
    }

    #[test]
    fn times_are_rounded_up_to_seconds() {
        assert_eq!(seconds(Duration::ZERO), 0);
        assert_eq!(seconds(Duration::from_millis(1)), 1);
        assert_eq!(seconds(Duration::from_millis(2500)), 3);
        assert_eq!(seconds(Duration::MAX), i32::MAX);
    }
}

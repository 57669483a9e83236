//! Steps of every request: the checksum of its body, and the proof of who sends it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use azure_core::credentials::Secret;
use azure_core::error::{Error, ErrorKind};
use azure_core::hmac::hmac_sha256;
use azure_core::http::policies::{Policy, PolicyResult};
use azure_core::http::{Body, Context, Method, Request};
use azure_core::time::{OffsetDateTime, to_rfc7231};

use super::account::{AzureAccount, Credential, SasSource};
use super::identity::TokenSource;
use crate::crc;

/// The steps for requests to an account's blobs, in their order: the signature covers what stands before it.
pub(super) fn blob_steps(account: &AzureAccount) -> Vec<Arc<dyn Policy>> {
    // The emulator refuses requests with the checksum.
    if account.is_emulator() { vec![proof(account)] } else { vec![Arc::new(ContentCrc), proof(account)] }
}

/// The steps for requests to an account's queues, which know no checksum.
pub(super) fn queue_steps(account: &AzureAccount) -> Vec<Arc<dyn Policy>> {
    vec![proof(account)]
}

fn proof(account: &AzureAccount) -> Arc<dyn Policy> {
    match &account.credential {
        Credential::SharedKey(key) => {
            Arc::new(SharedKey { account: account.account.clone(), key: Secret::new(key.secret().to_owned()) })
        }
        Credential::Sas(query) => Arc::new(Sas(Secret::new(query.secret().to_owned()))),
        Credential::Token(source) => Arc::new(Bearer(source.clone())),
        Credential::Vended(source) => Arc::new(VendedSas(source.clone())),
    }
}

/// Sends the CRC-64 of what is written: the service refuses a body that arrived damaged.
#[derive(Debug)]
struct ContentCrc;

#[async_trait]
impl Policy for ContentCrc {
    #[allow(elided_lifetimes_in_paths, reason = "the trait is declared so")]
    async fn send(&self, context: &Context, request: &mut Request, next: &[Arc<dyn Policy>]) -> PolicyResult {
        if is_content(request)
            && let Body::Bytes(body) = request.body()
        {
            let crc = crc::to_header(crc::crc64(body));
            request.insert_header("x-ms-content-crc64", crc);
        }
        next[0].send(context, request, &next[1..]).await
    }
}

/// Put Blob, Put Block and Put Block List.
fn is_content(request: &Request) -> bool {
    let comp = request.url().query_pairs().find(|(name, _)| name == "comp").map(|(_, value)| value);
    request.method() == Method::Put
        && match comp.as_deref() {
            None => request.headers().iter().any(|(name, _)| name.as_str() == "x-ms-blob-type"),
            Some(comp) => comp == "block" || comp == "blocklist",
        }
}

/// Adds a shared access signature to the URL; only here, so that no URL that is kept or logged has it.
struct Sas(Secret);

impl fmt::Debug for Sas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sas(***)")
    }
}

#[async_trait]
impl Policy for Sas {
    #[allow(elided_lifetimes_in_paths, reason = "the trait is declared so")]
    async fn send(&self, context: &Context, request: &mut Request, next: &[Arc<dyn Policy>]) -> PolicyResult {
        add_signature(request, &self.0);
        next[0].send(context, request, &next[1..]).await
    }
}

fn add_signature(request: &mut Request, signature: &Secret) {
    let query = match request.url().query() {
        Some(query) if !query.is_empty() => format!("{query}&{}", signature.secret()),
        _ => signature.secret().to_owned(),
    };
    request.url_mut().set_query(Some(&query));
}

/// Adds the signature that is good now; one that is refused is replaced once.
#[derive(Debug)]
struct VendedSas(Arc<dyn SasSource>);

#[async_trait]
impl Policy for VendedSas {
    #[allow(elided_lifetimes_in_paths, reason = "the trait is declared so")]
    async fn send(&self, context: &Context, request: &mut Request, next: &[Arc<dyn Policy>]) -> PolicyResult {
        let signature = self.0.sas().await.map_err(|error| Error::new(ErrorKind::Credential, error))?;
        let url = request.url().clone();
        add_signature(request, &Secret::new(signature.clone()));
        let answer = next[0].send(context, request, &next[1..]).await;
        if !is_refusal(&answer) {
            return answer;
        }
        let Some(other) = self.0.another(&signature).await else { return answer };
        *request.url_mut() = url;
        add_signature(request, &Secret::new(other));
        next[0].send(context, request, &next[1..]).await
    }
}

/// Whether the service did not accept who asked. Nothing was done.
fn is_refusal(answer: &PolicyResult) -> bool {
    let status = match answer {
        Ok(response) => u16::from(response.status()),
        Err(error) => match error.kind() {
            ErrorKind::HttpResponse { status, .. } => u16::from(*status),
            _ => return false,
        },
    };
    matches!(status, 401 | 403)
}

/// Adds the token of an identity.
#[derive(Debug)]
struct Bearer(Arc<TokenSource>);

#[async_trait]
impl Policy for Bearer {
    #[allow(elided_lifetimes_in_paths, reason = "the trait is declared so")]
    async fn send(&self, context: &Context, request: &mut Request, next: &[Arc<dyn Policy>]) -> PolicyResult {
        // The account's address was looked at already; whoever gets a token can use it, so this is asked where it is sent.
        if request.url().scheme() != "https" {
            return Err(Error::with_message(ErrorKind::Other, "a token is only sent over TLS"));
        }
        let token = self.0.token().await.map_err(|error| Error::new(ErrorKind::Credential, error))?;
        request.insert_header("authorization", format!("Bearer {}", token.secret()));
        next[0].send(context, request, &next[1..]).await
    }
}

/// Signs with the account's key ("Authorize with Shared Key" of the Blob and Queue services).
struct SharedKey {
    account: String,
    key: Secret,
}

impl fmt::Debug for SharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedKey({}, ***)", self.account)
    }
}

#[async_trait]
impl Policy for SharedKey {
    #[allow(elided_lifetimes_in_paths, reason = "the trait is declared so")]
    async fn send(&self, context: &Context, request: &mut Request, next: &[Arc<dyn Policy>]) -> PolicyResult {
        request.insert_header("x-ms-date", to_rfc7231(&OffsetDateTime::now_utc()));
        let signature = hmac_sha256(&string_to_sign(&self.account, request), &self.key)?;
        request.insert_header("authorization", format!("SharedKey {}:{signature}", self.account));
        next[0].send(context, request, &next[1..]).await
    }
}

fn string_to_sign(account: &str, request: &Request) -> String {
    let headers: BTreeMap<String, &str> = request
        .headers()
        .iter()
        .map(|(name, value)| (name.as_str().to_ascii_lowercase(), value.as_str().trim()))
        .collect();
    let header = |name: &str| headers.get(name).copied().unwrap_or_default();
    // The length of an empty body is signed as nothing, whatever the header says.
    let length = request.body().len().filter(|length| *length > 0).map(|length| length.to_string()).unwrap_or_default();
    let mut lines = vec![
        request.method().to_string(),
        header("content-encoding").into(),
        header("content-language").into(),
        length,
        header("content-md5").into(),
        header("content-type").into(),
        // Date: x-ms-date stands among the x-ms headers.
        String::new(),
    ];
    let conditions = ["if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range"];
    lines.extend(conditions.map(|name| header(name).to_owned()));
    let own = headers.iter().filter(|(name, _)| name.starts_with("x-ms-"));
    lines.extend(own.map(|(name, value)| format!("{name}:{value}")));
    lines.push(format!("/{account}{}", request.url().path()));
    let mut query: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in request.url().query_pairs() {
        query.entry(name.to_ascii_lowercase()).or_default().push(value.into_owned());
    }
    for (name, mut values) in query {
        values.sort();
        lines.push(format!("{name}:{}", values.join(",")));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use azure_core::http::Url;

    fn request(method: Method, url: &str) -> Request {
        Request::new(Url::parse(url).unwrap(), method)
    }

    #[test]
    fn the_string_to_sign_is_that_of_the_documentation() {
        // "Authorize with Shared Key": Get Container Metadata of account `myaccount`.
        let mut get = request(
            Method::Get,
            "https://myaccount.blob.core.windows.net/mycontainer?restype=container&comp=metadata&timeout=20",
        );
        get.insert_header("x-ms-date", "Fri, 26 Jun 2015 23:39:12 GMT");
        get.insert_header("x-ms-version", "2015-02-21");
        assert_eq!(
            string_to_sign("myaccount", &get),
            "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\nx-ms-version:2015-02-21\n\
             /myaccount/mycontainer\ncomp:metadata\nrestype:container\ntimeout:20"
        );
    }

    #[test]
    fn body_length_range_and_encoded_path_are_signed() {
        let mut put = request(Method::Put, "http://127.0.0.1:1/acct/c/a%2Fb%23?comp=block&blockid=QQ%3D%3D");
        put.insert_header("content-length", "3");
        put.insert_header("content-type", "application/octet-stream");
        put.insert_header("if-none-match", "*");
        put.set_body("abc");
        assert_eq!(
            string_to_sign("acct", &put),
            "PUT\n\n\n3\n\napplication/octet-stream\n\n\n\n*\n\n\n/acct/acct/c/a%2Fb%23\nblockid:QQ==\ncomp:block"
        );
        let mut empty = request(Method::Put, "https://acct.blob.core.windows.net/c/k");
        empty.insert_header("content-length", "0");
        assert_eq!(string_to_sign("acct", &empty), "PUT\n\n\n\n\n\n\n\n\n\n\n\n/acct/c/k");
    }

    #[test]
    fn messages_and_receipts_are_signed() {
        let mut post = request(
            Method::Post,
            "https://acct.queue.core.windows.net/firn/messages?visibilitytimeout=60&messagettl=90",
        );
        post.insert_header("accept", "application/xml");
        post.insert_header("content-type", "application/xml");
        post.insert_header("x-ms-version", "2025-11-05");
        post.set_body("<x/>");
        assert_eq!(
            string_to_sign("acct", &post),
            "POST\n\n\n4\n\napplication/xml\n\n\n\n\n\n\nx-ms-version:2025-11-05\n/acct/firn/messages\nmessagettl:90\n\
             visibilitytimeout:60"
        );
        let delete = request(Method::Delete, "http://127.0.0.1:1/acct/firn/messages/id?popreceipt=a%2Bb%2Fc%3D");
        assert_eq!(
            string_to_sign("acct", &delete),
            "DELETE\n\n\n\n\n\n\n\n\n\n\n\n/acct/acct/firn/messages/id\npopreceipt:a+b/c="
        );
    }

    #[test]
    fn checksums_go_with_content_only() {
        let mut blob = request(Method::Put, "https://a.blob.core.windows.net/c/k");
        assert!(!is_content(&blob));
        blob.insert_header("x-ms-blob-type", "BlockBlob");
        assert!(is_content(&blob));
        for (comp, expected) in [("block", true), ("blocklist", true), ("lease", false), ("metadata", false)] {
            let url = format!("https://a.blob.core.windows.net/c/k?comp={comp}");
            assert_eq!(is_content(&request(Method::Put, &url)), expected, "{comp}");
            assert!(!is_content(&request(Method::Get, &url)));
        }
    }

    #[test]
    fn debug_shows_no_secret() {
        for text in ["AccountName=a;AccountKey=c2VjcmV0", "AccountName=a;SharedAccessSignature=sig=c2VjcmV0"] {
            let shown = format!("{:?}", blob_steps(&crate::ConnectionString::parse(text).unwrap()));
            assert!(!shown.contains("c2VjcmV0"), "{shown}");
        }
    }
}

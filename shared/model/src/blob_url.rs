//! The URL forms that name a blob: reading one, and writing another blob in the same form.
//!
//! No URL parser is used: in `abfss`, `wasbs`, `az` and `file` URLs of Iceberg tables `%`, `#`, `?` and `+` are ordinary
//! characters of the key, which a URL parser would decode, cut off or encode.

use std::net::Ipv4Addr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::blob_id::{BlobId, BlobIdError};

/// What is encoded in the path of an `https://` URL: everything but RFC 3986 `pchar`, `/` and, because some readers take it
/// for a space, `+`.
const PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b':')
    .remove(b'@')
    .remove(b'/');

/// The form of a URL: everything but container and key, in the case in which it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UrlForm {
    /// `scheme://container@account.dfs.core.windows.net/key` (abfs, abfss, wasb, wasbs, az).
    ContainerAtHost {
        /// Scheme as written.
        scheme: String,
        /// Account as written.
        account: String,
        /// Rest of the host from its first dot on, with the port.
        domain: String,
    },
    /// `scheme://container/key`: the account comes from the configuration.
    Short {
        /// Scheme as written.
        scheme: String,
    },
    /// `https://account.blob.core.windows.net/container/key`, percent-encoded, or `az://account.blob…/container/key` as it
    /// stands.
    HostFirst {
        /// Scheme as written.
        scheme: String,
        /// Account as written.
        account: String,
        /// Rest of the host from its first dot on, with the port.
        domain: String,
    },
    /// `http://127.0.0.1:10000/account/container/key`, the emulator's form, percent-encoded.
    PathStyle {
        /// Scheme as written.
        scheme: String,
        /// Host and port.
        host: String,
        /// Account as written.
        account: String,
    },
    /// A file of this machine.
    File {
        /// `file://`, `file:`, `file://localhost` or nothing, as written.
        prefix: String,
    },
}

/// A text taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) form: UrlForm,
    pub(crate) container: String,
    pub(crate) key: String,
}

impl UrlForm {
    /// The form of `text`, see [`BlobId::parse`].
    ///
    /// # Errors
    /// As [`BlobId::parse`], but a short form needs no account.
    pub fn of(text: &str) -> Result<UrlForm, BlobIdError> {
        split(text).map(|named| named.form)
    }

    /// `id` in this form; `None` when the form cannot name it (a folder for a blob in Azure, or the reverse). A short form
    /// leaves the account out.
    pub fn render(&self, id: &BlobId) -> Option<String> {
        if id.is_local() != matches!(self, UrlForm::File { .. }) {
            return None;
        }
        let BlobId { account: own, container, key } = id;
        let account = |written: &str| if written.eq_ignore_ascii_case(own) { written.to_owned() } else { own.clone() };
        Some(match self {
            UrlForm::ContainerAtHost { scheme, account: written, domain } => {
                format!("{scheme}://{container}@{}{domain}/{key}", account(written))
            }
            UrlForm::Short { scheme } => format!("{scheme}://{container}/{key}"),
            UrlForm::HostFirst { scheme, account: written, domain } => {
                let path = if is_http(scheme) { encoded(container, key) } else { format!("{container}/{key}") };
                format!("{scheme}://{}{domain}/{path}", account(written))
            }
            UrlForm::PathStyle { scheme, host, account: written } => {
                format!("{scheme}://{host}/{}/{}", account(written), encoded(container, key))
            }
            // After a bare `file:` two slashes would begin a host.
            UrlForm::File { prefix } if prefix.ends_with(':') && key.starts_with("//") => format!("{prefix}//{key}"),
            UrlForm::File { prefix } => format!("{prefix}{key}"),
        })
    }

    /// The account as written, when the form names one.
    pub(crate) fn account(&self) -> Option<&str> {
        match self {
            UrlForm::ContainerAtHost { account, .. }
            | UrlForm::HostFirst { account, .. }
            | UrlForm::PathStyle { account, .. } => Some(account),
            UrlForm::Short { .. } | UrlForm::File { .. } => None,
        }
    }
}

/// Takes a text apart into its form, container and key.
pub(crate) fn split(text: &str) -> Result<Named, BlobIdError> {
    if text.starts_with('/') {
        return Ok(file("", text));
    }
    let Some((scheme, rest)) = text.split_once(':') else { return Err(BlobIdError::Relative(text.into())) };
    if scheme.eq_ignore_ascii_case("file") {
        return split_file(text, scheme, rest);
    }
    let Some(rest) = rest.strip_prefix("//") else { return Err(BlobIdError::Scheme(text.into())) };
    if is_http(scheme) {
        return split_http(text, scheme, rest);
    }
    if !["abfs", "abfss", "wasb", "wasbs", "az"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        return Err(BlobIdError::Scheme(quotable(text)));
    }
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    if let Some((container, host)) = authority.split_once('@') {
        let (account, domain) = storage_host(text, host)?;
        let form = UrlForm::ContainerAtHost { scheme: scheme.into(), account, domain };
        return named(text, form, container.into(), path.into());
    }
    // A container's name has no dot, a host always has one.
    if !authority.contains('.') {
        return named(text, UrlForm::Short { scheme: scheme.into() }, authority.into(), path.into());
    }
    let (account, domain) = storage_host(text, authority)?;
    let (container, key) = path.split_once('/').unwrap_or((path, ""));
    named(text, UrlForm::HostFirst { scheme: scheme.into(), account, domain }, container.into(), key.into())
}

fn split_file(text: &str, scheme: &str, rest: &str) -> Result<Named, BlobIdError> {
    let local_host = "//localhost/";
    let host_length = match rest.get(..local_host.len()) {
        Some(start) if start.eq_ignore_ascii_case(local_host) => local_host.len() - 1,
        _ if rest.starts_with("///") => 2,
        _ if rest.starts_with('/') && !rest.starts_with("//") => 0,
        _ => return Err(BlobIdError::FileHost(text.into())),
    };
    let (prefix, path) = text.split_at(scheme.len() + 1 + host_length);
    Ok(file(prefix, path))
}

fn file(prefix: &str, path: &str) -> Named {
    Named { form: UrlForm::File { prefix: prefix.into() }, container: String::new(), key: path.into() }
}

fn split_http(text: &str, scheme: &str, rest: &str) -> Result<Named, BlobIdError> {
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    let (rest, query) = rest.split_at(end);
    let query = query.split('#').next().unwrap_or_default();
    let versioned = |pair: &str| ["snapshot", "versionid"].iter().any(|name| pair_is(pair, name));
    if query.trim_start_matches('?').split('&').any(versioned) {
        return Err(BlobIdError::Version(quotable(text)));
    }
    let decoded = |part: &str| match percent_decode_str(part).decode_utf8() {
        Ok(part) => Ok(part.into_owned()),
        Err(_) => Err(BlobIdError::NotUtf8(quotable(text))),
    };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (form, path) = if names_no_account(host) {
        let (account, path) = path.split_once('/').unwrap_or((path, ""));
        if !is_account(account) {
            return Err(BlobIdError::Host { text: quotable(text), host: host.into() });
        }
        (UrlForm::PathStyle { scheme: scheme.into(), host: host.into(), account: account.into() }, path)
    } else {
        let (account, domain) = storage_host(text, host)?;
        (UrlForm::HostFirst { scheme: scheme.into(), account, domain }, path)
    };
    let (container, key) = path.split_once('/').unwrap_or((path, ""));
    named(text, form, decoded(container)?, decoded(key)?)
}

fn named(text: &str, form: UrlForm, container: String, key: String) -> Result<Named, BlobIdError> {
    // A slash in a container would move the border between container and key when the URL is written again.
    if container.is_empty() || container.contains('/') {
        return Err(BlobIdError::NoContainer(quotable(text)));
    }
    Ok(Named { form, container, key })
}

/// Account and domain of `account.blob.core.windows.net`, `account.dfs.…`, in any cloud, DNS zone or private link.
fn storage_host(text: &str, host: &str) -> Result<(String, String), BlobIdError> {
    let dot = host.find('.').unwrap_or(host.len());
    let (account, domain) = host.split_at(dot);
    let is_service = |label: &str| label.eq_ignore_ascii_case("blob") || label.eq_ignore_ascii_case("dfs");
    if !is_account(account) || !domain.split('.').any(is_service) || host.contains('@') {
        return Err(BlobIdError::Host { text: quotable(text), host: host.into() });
    }
    Ok((account.into(), domain.into()))
}

/// Hosts of an emulator, which has the account in the path: an IP address or a name without a dot.
fn names_no_account(host: &str) -> bool {
    let name = host.split(':').next().unwrap_or_default();
    host.starts_with('[') || name.parse::<Ipv4Addr>().is_ok() || (!name.is_empty() && !host.contains(['.', '@']))
}

/// Account names are letters and digits; a hyphen occurs in regional names of OneLake.
fn is_account(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn is_http(scheme: &str) -> bool {
    scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
}

fn pair_is(pair: &str, name: &str) -> bool {
    pair.split('=').next().is_some_and(|key| key.eq_ignore_ascii_case(name))
}

fn encoded(container: &str, key: &str) -> String {
    format!("{}/{}", utf8_percent_encode(container, PATH), utf8_percent_encode(key, PATH))
}

/// `text` for a message: the query of an `https://` URL, which may be a signature, is left out.
pub(crate) fn quotable(text: &str) -> String {
    let is_url = text.split_once("://").is_some_and(|(scheme, _)| is_http(scheme));
    match text.split_once('?') {
        Some((start, _)) if is_url => format!("{start}?…"),
        _ => text.into(),
    }
}

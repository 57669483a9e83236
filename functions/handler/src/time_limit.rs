//! How long an invocation may take: 80 % of `functionTimeout`, after which the host kills the process with everything that
//! runs in it.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

const FILE: &str = "host.json";
/// The app setting that overrides the file.
const SETTING: &str = "AzureFunctionsJobHost__functionTimeout";
/// What a host takes without a value, on every plan that Firn is made for.
const DEFAULT: Duration = Duration::from_secs(30 * 60);

/// The limit for one invocation; None: the host sets none.
///
/// # Errors
/// A sentence: the value is none that a host takes.
pub fn run_limit(app_root: &Path, setting: Option<String>) -> Result<Option<Duration>, String> {
    let (text, place) = match setting.filter(|text| !text.trim().is_empty()) {
        Some(text) => (Some(text), SETTING.to_owned()),
        None => {
            let file = app_root.join(FILE);
            (function_timeout(&file)?, format!("{}: functionTimeout", file.display()))
        }
    };
    let timeout = match text {
        None => Some(DEFAULT),
        Some(text) if text.trim() == "-1" => None,
        Some(text) => Some(
            parse_time_span(text.trim())
                .filter(|timeout| *timeout >= Duration::from_secs(1))
                .ok_or_else(|| format!("{place} \"{text}\" is not a time; write hh:mm:ss, as 00:30:00"))?,
        ),
    };
    Ok(timeout.map(|timeout| timeout.mul_f64(0.8)))
}

/// The name of the app setting, see [`run_limit`].
pub fn setting() -> Option<String> {
    std::env::var(SETTING).ok()
}

fn function_timeout(file: &Path) -> Result<Option<String>, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{} cannot be read: {error}", file.display()))?;
    let host: Value =
        serde_json::from_str(&text).map_err(|error| format!("{} is not JSON: {error}", file.display()))?;
    let found =
        host.as_object().and_then(|host| host.iter().find(|(key, _)| key.eq_ignore_ascii_case("functionTimeout")));
    Ok(found.map(|(_, value)| value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
}

/// `[d.]hh:mm[:ss[.fffffff]]`, as .NET writes it.
fn parse_time_span(text: &str) -> Option<Duration> {
    let (days, clock) = match text.split_once('.') {
        Some((days, clock)) if clock.contains(':') => (days.parse::<u64>().ok()?, clock),
        _ => (0, text),
    };
    let mut parts = clock.split(':');
    let hours: u64 = parts.next()?.parse().ok().filter(|hours| *hours < 24)?;
    let minutes: u64 = parts.next()?.parse().ok().filter(|minutes| *minutes < 60)?;
    let seconds: f64 = match parts.next() {
        Some(seconds) if seconds.bytes().all(|at| at.is_ascii_digit() || at == b'.') => {
            seconds.parse().ok().filter(|seconds| *seconds < 60.0)?
        }
        Some(_) => return None,
        None => 0.0,
    };
    if parts.next().is_some() {
        return None;
    }
    Some(
        Duration::from_secs(days.checked_mul(86_400)? + hours * 3600 + minutes * 60) + Duration::from_secs_f64(seconds),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(host: &str, setting: Option<&str>) -> Result<Option<Duration>, String> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("host.json"), host).unwrap();
        run_limit(folder.path(), setting.map(str::to_owned))
    }

    #[test]
    fn the_limit_is_eighty_percent_of_what_the_host_takes() {
        let seconds = |seconds: f64| Ok(Some(Duration::from_secs_f64(seconds)));
        assert_eq!(limit(r#"{"functionTimeout":"00:30:00"}"#, None), seconds(1440.0));
        assert_eq!(limit(r#"{"FunctionTimeout":"00:00:10"}"#, None), seconds(8.0));
        assert_eq!(limit(r#"{"functionTimeout":"1.00:00:00"}"#, None), seconds(69_120.0));
        assert_eq!(limit(r#"{"functionTimeout":"-1"}"#, None), Ok(None));
        assert_eq!(limit(r#"{"functionTimeout":-1}"#, None), Ok(None));
        assert_eq!(limit("{}", None), seconds(1440.0), "the default of the host");
        assert_eq!(limit(r#"{"functionTimeout":"00:30:00"}"#, Some("00:05:00")), seconds(240.0), "a setting wins");
        assert_eq!(limit(r#"{"functionTimeout":"00:30:00"}"#, Some("")), seconds(1440.0));
    }

    #[test]
    fn what_is_no_time_is_quoted() {
        for text in ["30", "00:61:00", "x", "00:00:00", "-00:30:00", "00:30:00:00", "24:00:00"] {
            let wrong = limit(&format!("{{\"functionTimeout\":\"{text}\"}}"), None).unwrap_err();
            assert!(wrong.contains(&format!("functionTimeout \"{text}\" is not a time")), "{wrong}");
        }
        assert!(limit("{", None).unwrap_err().contains("host.json is not JSON"));
        assert!(run_limit(Path::new("/no/such"), None).unwrap_err().contains("cannot be read"));
    }
}

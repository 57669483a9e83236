//! What the host tells the process: its port, the app's folder, where the configuration is.

use std::path::PathBuf;

/// The port that the host chose; the second name is that of older hosts.
const PORT: [&str; 2] = ["FUNCTIONS_CUSTOMHANDLER_PORT", "FUNCTIONS_HTTPWORKER_PORT"];
const APP_ROOT: &str = "FUNCTIONS_APP_ROOT_PATH";
/// Set by the local host only: the end of stdin is the end of the host.
const END_WITH_STDIN: &str = "FIRN_END_WITH_STDIN";
/// Variable that names the configuration.
const CONFIG: &str = "FIRN_CONFIG";
const DEFAULT_CONFIG: &str = "firn.yaml";

/// Why the process cannot begin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvironmentError {
    /// No port: it was not started by a host.
    #[error(
        "FUNCTIONS_CUSTOMHANDLER_PORT is not set: the Functions host starts this program; on your machine use `firn local`"
    )]
    NoPort,
    /// A port that is none.
    #[error("{variable} \"{value}\" is not a port; write a number from 1 to 65535")]
    Port {
        /// The variable.
        variable: &'static str,
        /// What it says.
        value: String,
    },
}

/// What the host told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandlerEnvironment {
    /// The port to listen on.
    pub port: u16,
    /// The folder with `host.json`.
    pub app_root: PathBuf,
    /// `FIRN_CONFIG` as it stands.
    pub config: String,
    /// The process ends when its stdin does.
    pub end_with_stdin: bool,
}

impl HandlerEnvironment {
    /// Reads the variables that `get` gives.
    ///
    /// # Errors
    /// [`EnvironmentError`].
    pub fn read(get: impl Fn(&str) -> Option<String>) -> Result<Self, EnvironmentError> {
        let get = |name: &str| get(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let found = PORT.into_iter().find_map(|variable| get(variable).map(|value| (variable, value)));
        let (variable, value) = found.ok_or(EnvironmentError::NoPort)?;
        let port = value.parse().ok().filter(|port| *port != 0);
        Ok(Self {
            port: port.ok_or(EnvironmentError::Port { variable, value })?,
            app_root: get(APP_ROOT).map_or_else(|| PathBuf::from("."), PathBuf::from),
            config: get(CONFIG).unwrap_or_else(|| DEFAULT_CONFIG.into()),
            end_with_stdin: get(END_WITH_STDIN).is_some(),
        })
    }

    /// The configuration's file: relative to the app's folder.
    ///
    /// # Errors
    /// A sentence: it is a URL.
    pub fn config_path(&self) -> Result<PathBuf, String> {
        if self.config.contains("://") {
            let shown = self.config.split('?').next().unwrap_or_default();
            return Err(format!(
                "FIRN_CONFIG \"{shown}\": a URL comes with a later version; put firn.yaml into the app's folder and write its \
                 path"
            ));
        }
        Ok(self.app_root.join(&self.config))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<HandlerEnvironment, EnvironmentError> {
        HandlerEnvironment::read(|name| {
            pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_host_tells_port_and_folder() {
        let told = read(&[("FUNCTIONS_CUSTOMHANDLER_PORT", "50123"), ("FUNCTIONS_APP_ROOT_PATH", "/app")]).unwrap();
        assert_eq!((told.port, told.config_path()), (50123, Ok("/app/firn.yaml".into())));
        let told = read(&[("FUNCTIONS_HTTPWORKER_PORT", "7"), ("FIRN_CONFIG", "conf/x.yaml")]).unwrap();
        assert_eq!((told.port, told.config_path()), (7, Ok("./conf/x.yaml".into())));
        let port = ("FUNCTIONS_CUSTOMHANDLER_PORT", "7");
        let told = read(&[port, ("FUNCTIONS_APP_ROOT_PATH", "/app"), ("FIRN_CONFIG", "/etc/firn.yaml")]).unwrap();
        assert_eq!(told.config_path(), Ok("/etc/firn.yaml".into()));
        let told = read(&[port, ("FIRN_CONFIG", "https://a.blob.core.windows.net/c/firn.yaml?sig=secret")]).unwrap();
        assert!(!told.end_with_stdin && read(&[port, ("FIRN_END_WITH_STDIN", "1")]).unwrap().end_with_stdin);
        let refused = told.config_path().unwrap_err();
        assert!(refused.contains("comes with a later version") && !refused.contains("secret"), "{refused}");
    }

    #[test]
    fn without_a_port_it_says_who_starts_it() {
        assert_eq!(read(&[]), Err(EnvironmentError::NoPort));
        assert_eq!(read(&[("FUNCTIONS_CUSTOMHANDLER_PORT", " ")]), Err(EnvironmentError::NoPort));
        for value in ["0", "x", "70000"] {
            let wrong = read(&[("FUNCTIONS_CUSTOMHANDLER_PORT", value)]).unwrap_err();
            assert!(wrong.to_string().contains(&format!("\"{value}\"")), "{wrong}");
        }
    }
}

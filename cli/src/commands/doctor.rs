//! `firn doctor`: what stands in the way, before anything runs, and what to do about it.

use firn_config::Config;
use firn_pass::VerifyCheck;

use crate::args::WithConfig;
use crate::commands::{Context, complain, config_path, told_to_stop};
use crate::doctor::Doctor;
use crate::exit::Exit;
use crate::output::Answer;
use crate::output::stdout::Stdout;
use crate::output::table::plural;

/// The name of the check of the file itself.
const CONFIGURATION: &str = "configuration";

pub(crate) async fn run(args: WithConfig, context: &Context) -> Exit {
    let path = match config_path(&args, std::env::var("FIRN_CONFIG").ok()) {
        Ok(path) => path,
        Err(message) => return super::refuse(message),
    };
    let mut answer = Answer::new(context.format, Stdout, false, context.progress.clone());
    let (mut checks, mut failed) = (0, 0);
    let mut say = |check: &VerifyCheck| {
        checks += 1;
        failed += u64::from(!check.ok);
        answer.checked(check);
    };
    let exit = match Config::from_file(&path) {
        Err(problems) => {
            problems.0.iter().for_each(|problem| say(&configuration(false, problem.to_string())));
            Some(Exit::Usage)
        }
        Ok(config) => {
            say(&configuration(true, described(&config)));
            let mut doctor = Doctor::new(&mut say);
            tokio::select! {
                () = doctor.run(&config) => None,
                () = told_to_stop() => {
                    complain("interrupted; what was not said was not checked");
                    Some(Exit::Failed)
                }
            }
        }
    };
    answer.checks_ended(checks, failed, None);
    exit.unwrap_or(if failed > 0 { Exit::Failed } else { Exit::Done })
}

fn configuration(ok: bool, message: String) -> VerifyCheck {
    VerifyCheck { check: CONFIGURATION.into(), ok, message }
}

fn described(config: &Config) -> String {
    let mut text = format!("{} is sound, with {}", config.file, plural(config.datasets.len() as u64, "dataset"));
    for warning in &config.warnings {
        text = format!("{text}; {warning}");
    }
    text
}

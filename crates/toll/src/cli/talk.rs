//! Everything the command says: data on stdout, talk and errors on stderr.

use std::error::Error;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use miette::Diagnostic;

use crate::analysis::capacity::CapacityError;
use crate::calibrate::Unfit;
use crate::cli::exit;
use crate::load::LoadFault;
use crate::plan::PlanError;
use crate::run::RunError;
use crate::store::StoreError;
use crate::study::StudyErrors;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The study file is wrong.
    #[error("the study file is wrong")]
    Study(Box<StudyErrors>),
    /// Neither a built-in study nor a file.
    #[error("no built-in study and no file is called `{name}`")]
    UnknownStudy {
        /// As typed.
        name: String,
        /// The built-in one that was probably meant.
        nearest: Option<String>,
    },
    /// The study file could not be read.
    #[error("cannot read {path}: {source}")]
    Unreadable {
        /// As typed.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// The file that would be written is there.
    #[error("{} is there already", path.display())]
    FileExists {
        /// The file.
        path: PathBuf,
    },
    /// The study file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Nobody said what to start.
    #[error("no command was given, and there is no terminal to ask on")]
    NoCommand,
    /// The terminal gives no answer.
    #[error("cannot read your answer: {0}")]
    Answers(io::Error),
    /// The study does not allow what was chosen.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The lab cannot be had as chosen.
    #[error(transparent)]
    Lab(#[from] toll_lab::LabError),
    /// An artifact cannot be had.
    #[error(transparent)]
    Artifact(#[from] toll_lab::artifacts::ArtifactError),
    /// A runtime's part cannot be had, so that nothing of it can run.
    #[error("the spring runtime is skipped")]
    RuntimeSkipped(#[source] toll_lab::artifacts::ArtifactError),
    /// What the Petclinic runs on or consists of cannot be had.
    #[error("the Petclinic cannot run")]
    PetclinicSkipped(#[source] toll_lab::artifacts::ArtifactError),
    /// More rounds of a run that is not there.
    #[error("`--rounds +{more}` adds to a run, and none is named")]
    MoreOfNothing {
        /// As typed.
        more: usize,
    },
    /// The user left before anything was begun.
    #[error("interrupted: nothing was begun")]
    Interrupted,
    /// The run ended early.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The run's directory.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The load cannot be run, or gave nothing.
    #[error(transparent)]
    Load(#[from] LoadFault),
    /// The run does not tell what is asked of it.
    #[error(transparent)]
    Capacity(#[from] CapacityError),
    /// The image cannot be made.
    #[error(transparent)]
    Image(#[from] toll_lab::image::ImageError),
    /// The study cannot be calibrated.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// stdout does not take the data.
    #[error("cannot write to stdout: {0}")]
    Output(io::Error),
    /// Signals cannot be caught.
    #[error("cannot catch signals: {0}")]
    Signals(io::Error),
}

impl CliError {
    /// What to do about it.
    fn help(&self) -> Option<String> {
        match self {
            Self::UnknownStudy { nearest, .. } => Some(match nearest {
                Some(name) => {
                    format!("did you mean `{name}`? `toll studies` lists the built-in ones")
                }
                None => "`toll studies` lists the built-in ones; a file needs its path".into(),
            }),
            Self::FileExists { .. } => Some("name another file: `toll init my-study.yaml`".into()),
            Self::NoCommand => {
                Some("for example `toll init --command './my-api --port {port}' --url /`".into())
            }
            Self::MoreOfNothing { more } => {
                Some(format!("use `--resume RUN --rounds +{more}`, or `--rounds {more}`"))
            }
            Self::Plan(error) => error.help().map(|help| help.to_string()),
            Self::Lab(error) => error.help(),
            Self::Artifact(error) | Self::PetclinicSkipped(error) => error.help(),
            Self::RuntimeSkipped(error) => Some(match error.help() {
                Some(help) => format!("{help}; `--runtime native` does without"),
                None => "`--runtime native` does without".into(),
            }),
            Self::Run(error) => error.help(),
            Self::Store(error) => error.help(),
            Self::Load(fault) => fault.help(),
            Self::Capacity(error) => Some(error.help()),
            Self::Unfit(error) => Some(error.help()),
            Self::Study(_)
            | Self::Unreadable { .. }
            | Self::Unwritable { .. }
            | Self::Answers(_)
            | Self::Interrupted
            | Self::Image(_)
            | Self::Output(_)
            | Self::Signals(_) => None,
        }
    }

    /// The command's exit status.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Study(_)
            | Self::UnknownStudy { .. }
            | Self::Unreadable { .. }
            | Self::FileExists { .. }
            | Self::NoCommand
            | Self::MoreOfNothing { .. }
            | Self::Plan(_)
            | Self::Unfit(_) => exit::USAGE,
            Self::Interrupted => exit::INTERRUPTED,
            Self::Load(LoadFault::Unkept { .. }) => exit::UNKEPT,
            Self::Load(fault) if fault.is_usage() => exit::USAGE,
            _ => exit::FAILED,
        }
    }
}

/// Says why the command failed and what to do about it.
pub fn say_error(error: &CliError) {
    if let CliError::Study(errors) = error {
        return say(&render(errors.as_ref()));
    }
    if let CliError::Interrupted = error {
        return say(&error.to_string());
    }
    say(&format!("error: {}", with_causes(error)));
    if let Some(help) = error.help() {
        say(&format!("help: {help}"));
    }
}

/// The error and what caused it. Some texts hold their cause already: it is not said twice.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let words = next.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        cause = next.source();
    }
    text
}

/// A study file's errors with file, line and caret.
pub fn render(diagnostic: &dyn miette::Diagnostic) -> String {
    let theme = if io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        miette::GraphicalTheme::unicode()
    } else {
        miette::GraphicalTheme::unicode_nocolor()
    };
    let mut text = String::new();
    let handler =
        miette::GraphicalReportHandler::new_themed(theme).with_width(100).with_links(false);
    match handler.render_report(&mut text, diagnostic) {
        Ok(()) => text,
        Err(_) => diagnostic.to_string(),
    }
}

/// A line of talk.
pub fn say(text: &str) {
    // A closed stderr must not end a run.
    let _ = writeln!(io::stderr().lock(), "{}", text.trim_end());
}

/// Data. A reader that closed the pipe has what it wanted.
///
/// # Errors
/// When stdout cannot take it, for instance on a full disk.
pub fn print(text: &str) -> Result<(), CliError> {
    match writeln!(io::stdout().lock(), "{}", text.trim_end()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(CliError::Output(error)),
        _ => Ok(()),
    }
}

/// Whether stdout shows colours, and its width.
pub fn stdout_style() -> (usize, bool) {
    const WITHOUT_TERMINAL: usize = 100;
    let colour = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let term = console::Term::stdout();
    let width = term.size_checked().map_or(WITHOUT_TERMINAL, |(_, columns)| usize::from(columns));
    (width, colour)
}

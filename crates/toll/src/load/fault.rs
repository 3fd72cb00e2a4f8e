//! What keeps `toll load` and `toll merge` from doing what was asked for, and what to do about it.

use std::io;
use std::path::PathBuf;

use toll_load::{LoadError, LoadModel, LoadReport};

use super::Finished;

/// Why there is no result, or none that counts.
#[derive(Debug, thiserror::Error)]
pub enum LoadFault {
    /// A file that was named cannot be read.
    #[error("cannot read {path} ({what}): {source}")]
    Unreadable {
        /// What it was for.
        what: &'static str,
        /// As typed.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is text of another kind than it should be.
    #[error("{path}:{line}: {problem}")]
    BadLine {
        /// As typed.
        path: PathBuf,
        /// From one.
        line: usize,
        /// What is wrong there.
        problem: String,
        /// How it should be.
        help: &'static str,
    },
    /// A file holds nothing of what it is for.
    #[error("{path} holds no {what}")]
    Empty {
        /// As typed.
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
    },
    /// A header without a colon.
    #[error("`{header}` is no header")]
    BadHeader {
        /// As typed.
        header: String,
    },
    /// A duration where the body stands.
    #[error("`{typed}` would be a body, as in hey and curl; for the length write -z {length}")]
    LengthAsBody {
        /// The option with its value.
        typed: String,
        /// What `-z` would take.
        length: String,
    },
    /// The longest warm-up is shorter than the shortest.
    #[error("--warm-up-max is shorter than --warm-up")]
    WarmUp,
    /// A part whose warm-up has no fixed length.
    #[error("a --part cannot have a --warm-up-max: each part would end its warm-up on its own")]
    WarmUpOfPart,
    /// The common start has passed.
    #[error("the instant {instant} of --start-at has passed")]
    StartPassed {
        /// As typed.
        instant: jiff::Timestamp,
    },
    /// Two forms without a file.
    #[error("only one form of output fits on stdout")]
    TwoOnStdout,
    /// An output file.
    #[error("cannot write {path}: {source}")]
    Unwritable {
        /// As typed.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The engine cannot carry the plan out.
    #[error(transparent)]
    Engine(LoadError),
    /// Certificates or keys that were named are not what they should be.
    #[error("cannot use {option}: {problem}")]
    BadPem {
        /// The option that named the file.
        option: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// Single requests of a merged result.
    #[error("a merged result has no single requests to list")]
    NoRows,
    /// It ran, and nothing came back.
    #[error("not one request was answered: {seen}")]
    NothingAnswered {
        /// The errors by kind.
        seen: String,
    },
    /// It ran, and left out what it should have sent.
    #[error("the schedule was not kept: {unsent} of {scheduled} requests were never sent")]
    Unkept {
        /// Requests that were due and never sent.
        unsent: u64,
        /// Requests that were due.
        scheduled: u64,
        /// Whose limit it was.
        limit: Bottleneck,
    },
    /// A file is no result of a part.
    #[error("{path} is no result that can be merged: {source}")]
    NoResult {
        /// As typed.
        path: PathBuf,
        /// Where the JSON is not as expected.
        source: serde_json::Error,
    },
    /// Results of different loads.
    #[error("{path} is the result of another load than {first}")]
    OtherLoad {
        /// The first file.
        first: PathBuf,
        /// The one that differs.
        path: PathBuf,
    },
    /// The parts are not those of one whole.
    #[error("these are not the parts of one load: {seen}")]
    WrongParts {
        /// Which are there.
        seen: String,
    },
}

/// What kept an open loop from its schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bottleneck {
    /// The engine had no CPU left.
    Generator,
    /// Answers did not come, and connections stayed busy.
    Service,
}

impl Bottleneck {
    /// Told by the engine's check of its own CPU: with time to spare, it waited for the service.
    pub fn of(report: &LoadReport) -> Self {
        let busy = report.checks.iter().any(|check| check.name == "own-cpu" && !check.holds);
        if busy { Self::Generator } else { Self::Service }
    }

    /// What to change for a schedule that is kept.
    pub fn advice(self) -> &'static str {
        match self {
            Self::Generator => {
                "the generator was the limit: give it more --threads, a faster machine or a lower rate"
            }
            Self::Service => {
                "the service did not keep up: lower the rate, or allow more --max-connections"
            }
        }
    }
}

/// The requests of an open loop that were never sent. A closed loop has no schedule to keep.
pub(super) fn unkept(finished: Finished<'_>) -> Option<LoadFault> {
    let measure = &finished.report.measure;
    let is_open = matches!(finished.plan.model, LoadModel::Open { .. });
    (is_open && measure.unsent > 0).then(|| LoadFault::Unkept {
        unsent: measure.unsent,
        scheduled: measure.scheduled,
        limit: Bottleneck::of(finished.report),
    })
}

impl LoadFault {
    /// What to do about it.
    pub fn help(&self) -> Option<String> {
        Some(match self {
            Self::BadLine { help, .. } => (*help).into(),
            Self::Empty { what, .. } => format!("give a file with at least one of the {what}"),
            Self::BadHeader { .. } => "write it as 'name: value'".into(),
            Self::LengthAsBody { .. } => "give such a body with -D FILE, or with -m POST".into(),
            Self::WarmUp => "make --warm-up-max the longer one, or leave it out".into(),
            Self::WarmUpOfPart => "give every part the same --warm-up, long enough".into(),
            Self::StartPassed { .. } => {
                "choose an instant that leaves time to start every engine".into()
            }
            Self::TwoOnStdout => "give all but one of them a file: --output json=out.json".into(),
            Self::Unwritable { .. } => {
                "check that the folder exists, may be written to and has room".into()
            }
            Self::Engine(error) => return engine_help(error),
            Self::BadPem { option, .. } => pem_help(option).into(),
            Self::NothingAnswered { .. } => {
                "look at the service's log, and try the URL once with curl".into()
            }
            Self::Unkept { limit, .. } => limit.advice().into(),
            Self::NoResult { .. } => {
                "merge the files that `toll load --part I/N --output json=FILE` wrote".into()
            }
            Self::OtherLoad { .. } => {
                "start every part with the same arguments, --part apart".into()
            }
            Self::WrongParts { .. } => {
                "give the file of each part once: 1/3, 2/3 and 3/3 of three".into()
            }
            Self::NoRows => "have every part list its own, and concatenate the files".into(),
            Self::Unreadable { .. } => return None,
        })
    }

    /// Whether what was typed is to blame.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Engine(error) => is_typed(error),
            Self::Unwritable { .. } | Self::NothingAnswered { .. } | Self::Unkept { .. } => false,
            _ => true,
        }
    }
}

const KEY: &str = "--key (without it, the key in the file of --cert)";

/// The engine names the plan's fields, of which the person who typed knows nothing.
impl From<LoadError> for LoadFault {
    fn from(error: LoadError) -> Self {
        let (field, problem) = match &error {
            LoadError::BadPem { field, source } => (*field, source.to_string()),
            LoadError::BadCertificate { field, source } => (*field, source.to_string()),
            _ => return Self::Engine(error),
        };
        let option = match field {
            "connection.tls.ca_pem" => "--cacert",
            "connection.tls.identity.chain_pem" => "--cert",
            "connection.tls.identity.key_pem" => KEY,
            _ => "--cert with its --key",
        };
        Self::BadPem { option, problem }
    }
}

fn pem_help(option: &str) -> &'static str {
    match option {
        "--cacert" => "give a PEM file with the certificates to trust",
        KEY => "give the certificate's key, PEM: --key FILE, or in the file of --cert",
        _ => "give PEM files: certificates, the own one first, and the key that belongs to it",
    }
}

/// The engine knows plans; here a command line was typed.
fn engine_help(error: &LoadError) -> Option<String> {
    match error {
        LoadError::BadUrl { .. } => {
            Some("write it as http://host:port/path or https://host:port/path".into())
        }
        LoadError::OpenFileLimit { needed, .. } => Some(format!(
            "use fewer connections (-c, --max-connections), or raise the limit: ulimit -n {needed}"
        )),
        LoadError::NoRows { .. } => Some("give --rows FILE, a CSV file with a header line".into()),
        // What is a key of the plan there is an option here.
        error => Some(error.help()?.replace("set template to false", "leave --template out")),
    }
}

/// Whether the engine complains of the plan, not of the world.
fn is_typed(error: &LoadError) -> bool {
    matches!(
        error,
        LoadError::BadUrl { .. }
            | LoadError::BadMethod { .. }
            | LoadError::BadHeader { .. }
            | LoadError::BadRate { .. }
            | LoadError::BadClients { .. }
            | LoadError::BadRange { .. }
            | LoadError::UnknownPlaceholder { .. }
            | LoadError::UnclosedPlaceholder { .. }
            | LoadError::UnknownColumn { .. }
            | LoadError::NoRows { .. }
            | LoadError::BadCell { .. }
            | LoadError::BinaryTemplate
            | LoadError::BadServerName { .. }
    )
}

#[cfg(test)]
mod tests {
    use toll_load::{Check, Identity, Listener, LoadPlan, Stop, Target};

    use super::*;

    fn unkept_of(model: LoadModel, own_cpu_holds: bool) -> Option<LoadFault> {
        let plan = LoadPlan::new(Target::get("http://a/"), model, Stop::AfterRequests(10));
        let own_cpu = Check { name: "own-cpu".into(), holds: own_cpu_holds, ..Check::default() };
        let mut report = LoadReport { checks: vec![own_cpu], ..LoadReport::default() };
        (report.measure.scheduled, report.measure.unsent) = (10, 3);
        unkept(Finished { plan: &plan, report: &report })
    }

    #[test]
    fn a_schedule_that_was_not_kept_has_the_advice_that_fits() {
        let fault = unkept_of(LoadModel::open(10.0, 5), true).unwrap();
        assert_eq!(
            fault.to_string(),
            "the schedule was not kept: 3 of 10 requests were never sent"
        );
        assert!(fault.help().unwrap().contains("--max-connections"));
        let busy = unkept_of(LoadModel::open(10.0, 5), false).unwrap();
        assert!(busy.help().unwrap().contains("--threads"));
    }

    #[test]
    fn a_missing_key_is_told_by_the_options_that_give_one() {
        let certificate = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
        let target = Target::get("https://127.0.0.1:1/");
        let mut plan = LoadPlan::new(target, LoadModel::closed(1), Stop::AfterRequests(1));
        let identity = Identity { chain_pem: certificate.into(), key_pem: certificate.into() };
        plan.connection.tls.identity = Some(identity);
        plan.connection.tls.insecure = true;
        let stop = std::sync::atomic::AtomicBool::new(false);
        let listener = Listener { stop: &stop, emit: &mut |_| {}, samples: None };
        let fault = LoadFault::from(toll_load::run_with(&plan, listener).unwrap_err());
        let said = fault.to_string();
        assert!(said.contains("--key") && said.contains("--cert"), "{said}");
        assert!(!said.contains("identity"), "{said}");
        assert!(fault.is_usage() && fault.help().unwrap().contains("--key FILE"));
    }

    #[test]
    fn a_closed_loop_has_no_schedule_to_keep() {
        assert!(unkept_of(LoadModel::closed(5), false).is_none());
    }
}

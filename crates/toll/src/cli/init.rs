//! `toll init`: three answers, asked or typed, into a study file that runs.

use std::fs::OpenOptions;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use super::arguments::InitArguments;
use super::commands::read;
use super::exit;
use super::talk::{CliError, print, say};

/// Where the program listens unless its URL says so.
const PORT: u16 = 8080;

/// Where the first of the services that it calls listens.
const FIRST_CALLED: u16 = 9001;

/// Asks what was not typed, and writes the file.
pub fn init(arguments: &InitArguments) -> Result<u8, CliError> {
    let file = &arguments.file;
    if file.exists() {
        return Err(CliError::FileExists { path: file.clone() });
    }
    let text = Answers::of(arguments)?.study();
    // What an answer makes wrong is told as in any study.
    read(&file.display().to_string(), &text)?;
    write_new(file, &text).map_err(|source| CliError::Unwritable { path: file.clone(), source })?;
    let file = file.display();
    print(&format!(
        "wrote {file}\nnext: toll plan {file}          what would run, with each command line\n      toll run {file} --quick   a first look"
    ))?;
    Ok(exit::DONE)
}

fn write_new(file: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(file)?;
    file.write_all(text.as_bytes())
}

/// What a study needs to know of an application.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Answers {
    command: String,
    port: u16,
    path: String,
    calls: Vec<String>,
}

impl Answers {
    fn of(arguments: &InitArguments) -> Result<Self, CliError> {
        let InitArguments { command, url, calls, .. } = arguments;
        if let Some(command) = command {
            let url = url.as_deref().unwrap_or("/");
            return Ok(Self::new(command, url, calls.iter().map(String::as_str)));
        }
        if !io::stdin().is_terminal() {
            return Err(CliError::NoCommand);
        }
        let command = ask("The command that starts your service ({port} is filled in)", "")?;
        let url = ask("The path that is called, or a URL with its port", "/")?;
        let calls = ask("Services that it calls, by name, with commas between them", "none")?;
        let calls = calls.split(',').map(str::trim).filter(|name| *name != "none");
        Ok(Self::new(&command, &url, calls))
    }

    fn new<'a>(command: &str, url: &str, calls: impl Iterator<Item = &'a str>) -> Self {
        let (port, path) = parts_of(url);
        let calls = calls.filter(|name| !name.is_empty()).map(str::to_owned).collect();
        Self { command: command.trim().into(), port: port.unwrap_or(PORT), path, calls }
    }

    /// The file.
    fn study(&self) -> String {
        let Self { command, port, path, calls } = self;
        let name = self.name();
        let command = serde_json::Value::from(command.as_str());
        let path = serde_json::Value::from(path.as_str());
        let called: String = calls.iter().zip(self.ports()).map(called).collect();
        let example = calls.first().map_or("stock", String::as_str);
        format!(
            "\
# Written by `toll init`. `toll study --default` explains every key.
study: {name}
question: What does a sidecar cost {name}?

app:
  # The service that the load calls.
  entry: {name}
  services:
    {name}:
      # It listens here. {{port}} in the command is this number, and the variable PORT has it, too.
      port: {port}
      # No shell runs it. Relative paths lead from the folder of this file.
      program: {{command: {command}}}
      # Where it finds what it calls: {{url.{example}}} or {{address.{example}}} in the command or in a variable.
      # env: {{{variable}: \"{{url.{example}}}\"}}
      calls: [{calls}]
{called}
variants:
  bare: {{}}
  sidecar: {{sidecar: {{proxy: envoy, mtls: strict}}}}
baseline: bare

loads:
  same-rate:
    request: {{path: {path}}}
    open: {{rate: 50% of capacity}}

headline: [latency_p50, latency_p99, cpu_per_request]
rounds: 10
",
            calls = calls.join(", "),
            variable = example.to_uppercase().replace('-', "_"),
        )
    }

    /// The program's own, as far as a service can have it.
    fn name(&self) -> String {
        let words = self.command.split_whitespace();
        // An interpreter says less than its script.
        let is_file = |word: &&str| !word.starts_with('-') && word.contains(['/', '.']);
        let word = words.clone().find(is_file).or(words.clone().next()).unwrap_or_default();
        let stem = Path::new(word).file_stem().unwrap_or_default().to_string_lossy().to_lowercase();
        let dashed = stem.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        let name = dashed.trim_matches('-').to_owned();
        let is_free = !self.calls.contains(&name) && name.len() <= 40;
        if is_free && !name.is_empty() { name } else { "app".into() }
    }

    /// For the services that it calls.
    fn ports(&self) -> impl Iterator<Item = u16> {
        let own = self.port;
        (FIRST_CALLED..).filter(move |port| *port != own)
    }
}

fn called((name, port): (&String, u16)) -> String {
    format!(
        "    {name}:
      port: {port}
      # toll's own service stands for it. `program: {{command: ...}}` starts yours.
      program: {{built_in: {{work: {{cpu: 500us}}}}}}
"
    )
}

/// Port and path of `http://localhost:9000/checkout`, or of the path alone.
fn parts_of(url: &str) -> (Option<u16>, String) {
    let url = url.trim();
    let rest = url.strip_prefix("http://").unwrap_or(url);
    let (authority, path) = rest.find('/').map_or((rest, ""), |slash| rest.split_at(slash));
    let port = authority.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    (port, if path.is_empty() { "/".into() } else { path.into() })
}

fn ask(question: &str, default: &str) -> Result<String, CliError> {
    let shown = if default.is_empty() { String::new() } else { format!(" [{default}]") };
    say(&format!("{question}{shown}:"));
    let mut line = String::new();
    io::stdin().read_line(&mut line).map_err(CliError::Answers)?;
    match line.trim() {
        "" if default.is_empty() => Err(CliError::NoCommand),
        "" => Ok(default.into()),
        answer => Ok(answer.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(command: &str, url: &str, calls: &[&str]) -> Answers {
        Answers::new(command, url, calls.iter().copied())
    }

    #[test]
    fn a_url_says_port_and_path_and_a_path_alone_is_enough() {
        assert_eq!(parts_of("http://localhost:9000/a?b=c"), (Some(9000), "/a?b=c".into()));
        assert_eq!(parts_of("localhost:9000"), (Some(9000), "/".into()));
        assert_eq!(parts_of("/checkout"), (None, "/checkout".into()));
    }

    #[test]
    fn a_service_is_called_as_its_program_or_the_script_that_an_interpreter_runs() {
        let name = |command| answers(command, "/", &["stock"]).name();
        assert_eq!(name("./bin/Shop_v2 --port {port}"), "shop-v2");
        assert_eq!(name("python3 -u shop.py {port}"), "shop");
        assert_eq!(name("shopd"), "shopd");
        assert_eq!(name("./stock"), "app");
    }

    #[test]
    fn whatever_is_answered_makes_a_study_or_an_error_that_names_the_answer() {
        for calls in [&[][..], &["stock", "name-db"]] {
            let text = answers(r#"./shop --name "a b""#, "/a?b=c", calls).study();
            crate::study::read("study.yaml", &text, &|_| None).unwrap();
        }
        let text = answers("./shop | tee log", "/", &[]).study();
        assert!(crate::study::read("study.yaml", &text, &|_| None).is_err());
    }
}

//! The page in a real browser: nothing fails, nothing is fetched, nothing sticks out, all charts are drawn.
//!
//! Chromium may resolve no name, so nothing leaves the machine. Its own log of the network tells what a page
//! asks for from what the browser asks for at each start. Without Chromium these tests say SKIP.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde::Deserialize;
use serde_json::Value;
use tempfile::TempDir;

use super::html;
use super::tests::{ambient_replicas, customer_360, edges, egress_gateway, mesher, petclinic};

/// A start takes under a second; on a busy machine it may take ten times as long.
const LONGEST: Duration = Duration::from_secs(60);
const FLAGS: [&str; 10] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--enable-logging=stderr",
];
const NOBODY_IS_REACHED: &str = "--host-resolver-rules=MAP * ~NOTFOUND";
const LIGHT: &str = "--blink-settings=preferredColorScheme=1";
const DARK: &str = "--blink-settings=preferredColorScheme=0";
/// Widths of a phone, a tablet and a laptop, CSS pixels.
const WIDTHS: [u32; 3] = [390, 768, 1280];

/// Height of a laptop's screen, CSS pixels.
const LAPTOP: f64 = 800.0;
/// Sheets of a study of seven loads, and some more; an endless table would take hundreds.
const LONGEST_PRINT: usize = 36;

/// A browser with a folder for each page that it is shown.
struct Browser {
    program: PathBuf,
    dir: TempDir,
}

/// What the browser made of a page.
struct Seen {
    /// The document after all was loaded.
    dom: String,
    /// Lines that the page wrote to its console, by itself or by going wrong.
    console: Vec<String>,
    /// URLs that the page asked for over the network.
    requests: Vec<String>,
}

/// How a page is laid out in a frame of one width.
#[derive(Debug, Deserialize)]
struct Layout {
    /// CSS pixels by which the page is wider than its frame.
    overflow: f64,
    /// Sum of the background's red, green and blue: 0 is black, 765 white.
    brightness: u32,
    /// Id of each chart and its shorter side as drawn, in CSS pixels.
    charts: Vec<(String, f64)>,
    /// Parts of the first screen and where each ends, CSS pixels from the top; nothing of those that are missing.
    ends: Vec<(String, f64)>,
}

impl Browser {
    /// The machine's browser; says SKIP when there is none.
    fn found() -> Option<Self> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let program = std::env::split_paths(&path).map(|dir| dir.join("chromium"));
        let found = program.into_iter().find(|program| program.is_file());
        if found.is_none() {
            println!("SKIP the report in a browser: no chromium on PATH (package chromium)");
        }
        found.map(|program| Self { program, dir: tempfile::tempdir().unwrap() })
    }

    fn open(&self, page: &str, scheme: &str) -> Seen {
        let net_log = self.dir.path().join("net.json");
        let log_net = format!("--log-net-log={}", net_log.display());
        let (dom, errors) = self.start(page, &[scheme, &log_net, "--dump-dom"]);
        let console = errors.lines().filter(|line| line.contains("CONSOLE"));
        Seen { dom, console: console.map(str::to_owned).collect(), requests: requests(&net_log) }
    }

    /// The page as frames of [`WIDTHS`] show it. A window cannot be as narrow as a phone, a frame can.
    fn layouts(&self, page: &str, scheme: &str) -> Vec<Layout> {
        let dom = self.open(&framed(page), scheme).dom;
        let title = dom.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next());
        serde_json::from_str(title.unwrap()).unwrap()
    }

    fn print(&self, page: &str) -> Vec<u8> {
        let pdf = self.dir.path().join("page.pdf");
        self.start(page, &[&format!("--print-to-pdf={}", pdf.display()), "--no-pdf-header-footer"]);
        fs::read(pdf).unwrap()
    }

    /// Shows `page` to its end; gives stdout and stderr.
    fn start(&self, page: &str, flags: &[&str]) -> (String, String) {
        let [file, out, err] = ["page.html", "out", "err"].map(|name| self.dir.path().join(name));
        fs::write(&file, page).unwrap();
        // A profile of its own: two starts that share one would be one browser.
        let profile = tempfile::tempdir_in(self.dir.path()).unwrap();
        let mut command = Command::new(&self.program);
        command
            .args(FLAGS)
            .arg(NOBODY_IS_REACHED)
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .args(flags)
            .arg(format!("file://{}", file.display()))
            .stdin(Stdio::null())
            .stdout(File::create(&out).unwrap())
            .stderr(File::create(&err).unwrap());
        run_to_its_end(command);
        let text = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
        (text(&out), text(&err))
    }
}

/// Runs a command that ends by itself, within [`LONGEST`]; else ends it and all that it started.
fn run_to_its_end(mut command: Command) {
    use std::os::unix::process::CommandExt;
    let mut child = command.process_group(0).spawn().unwrap();
    let deadline = Instant::now() + LONGEST;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > deadline {
            killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL).unwrap();
            child.wait().unwrap();
            panic!("the browser did not end within {LONGEST:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(status.success(), "the browser ended with {status}");
}

/// URLs in a log of Chromium's network that a page asked for; the browser's own have no origin.
fn requests(net_log: &Path) -> Vec<String> {
    let log: Value = serde_json::from_slice(&fs::read(net_log).unwrap()).unwrap();
    let begun = log["constants"]["logEventTypes"]["URL_REQUEST_START_JOB"].clone();
    assert!(begun.is_number(), "the log has no event for the begin of a request");
    let events = log["events"].as_array().unwrap().iter();
    let params = events.filter(|event| event["type"] == begun).map(|event| &event["params"]);
    let url = |params: &Value| params["url"].as_str().map(str::to_owned);
    params
        .filter(|params| params["initiator"] != "not an origin")
        .filter_map(url)
        .filter(|url| !url.starts_with("file:"))
        .collect()
}

/// A document that shows `page`, unchanged, in frames of [`WIDTHS`] and writes their layouts into its title.
fn framed(page: &str) -> String {
    const MEASURE: &str = r"
        const brightness = colour => colour.match(/\d+/g).slice(0, 3).reduce((sum, c) => sum + +c, 0);
        const shorter = box => Math.min(box.width, box.height);
        const chart = svg => [
            svg.closest('figure').id,
            Math.min(shorter(svg.getBBox()), shorter(svg.getBoundingClientRect())),
        ];
        const layout = frame => {
            const page = frame.contentDocument, root = page.documentElement;
            const end = (selector) => [...page.querySelectorAll(selector)]
                .map(element => [selector, element.getBoundingClientRect().bottom]);
            const ends = ['h1', '.badges', '.sheet', '.two figure svg', '.two figure'].flatMap(end);
            // What is folded must fit once it is asked for.
            page.querySelectorAll('details').forEach(details => details.open = true);
            return {
                overflow: root.scrollWidth - root.clientWidth,
                brightness: brightness(frame.contentWindow.getComputedStyle(root).backgroundColor),
                ends,
                charts: [...page.querySelectorAll('figure svg')].map(chart),
            };
        };
        addEventListener('load', () => {
            const frames = [...document.querySelectorAll('iframe')];
            document.title = JSON.stringify(frames.map(layout));
        });";
    let document = maud::html! {
        (maud::DOCTYPE)
        // Frames follow the scheme of the document around them, not the browser's.
        meta name="color-scheme" content="light dark";
        title {}
        script { (maud::PreEscaped(MEASURE)) }
        @for width in WIDTHS {
            iframe srcdoc=(page) style=(format!("border: 0; width: {width}px")) {}
        }
    };
    document.into_string()
}

fn pages() -> [String; 6] {
    [mesher(), edges(), customer_360(), petclinic(), ambient_replicas(), egress_gateway()]
        .map(|f| html(&f))
}

#[test]
fn the_page_says_nothing_on_the_console_and_asks_nobody_for_anything() {
    let Some(browser) = Browser::found() else { return };
    for page in pages() {
        let seen = browser.open(&page, LIGHT);
        assert!(seen.dom.contains("<svg"), "the page was shown");
        assert_eq!(seen.console, [""; 0]);
        assert_eq!(seen.requests, [""; 0]);
    }
}

#[test]
fn a_page_that_fails_and_one_that_fetches_would_be_noticed() {
    let Some(browser) = Browser::found() else { return };
    let [page, ..] = pages();
    let bad = "<script>console.error(1)</script><img src=http://x.test/></body>";
    let seen = browser.open(&page.replace("</body>", bad), LIGHT);
    assert_eq!(seen.console.len(), 1, "{:?}", seen.console);
    assert_eq!(seen.requests, ["http://x.test/"]);
}

#[test]
fn no_page_is_wider_than_its_screen_and_every_chart_is_drawn() {
    let Some(browser) = Browser::found() else { return };
    for page in pages() {
        let charts = page.matches("<svg").count();
        for (layout, width) in browser.layouts(&page, LIGHT).iter().zip(WIDTHS) {
            assert_eq!(layout.overflow, 0.0, "at {width} px");
            assert!(charts > 0 && layout.charts.len() == charts, "{:?}", layout.charts);
            for (id, side) in &layout.charts {
                assert!(*side > 40.0, "{id} is {side} px small at {width} px");
            }
        }
    }
}

#[test]
fn the_first_screen_of_a_laptop_holds_the_answer_the_table_and_both_charts() {
    let Some(browser) = Browser::found() else { return };
    for page in pages() {
        let [_, _, laptop] = browser.layouts(&page, LIGHT).try_into().unwrap();
        let parts: Vec<&str> = laptop.ends.iter().map(|(part, _)| part.as_str()).collect();
        let screen = [
            "h1",
            ".badges",
            ".sheet",
            ".two figure svg",
            ".two figure svg",
            ".two figure",
            ".two figure",
        ];
        assert_eq!(parts, screen);
        for (part, end) in &laptop.ends {
            assert!(*end < LAPTOP, "{part} ends at {end}");
        }
    }
}

#[test]
fn a_first_screen_that_is_too_long_would_be_noticed() {
    let Some(browser) = Browser::found() else { return };
    let [page, ..] = pages();
    let page = page.replace("<h1", "<p style='height: 600px'></p><h1");
    let [_, _, laptop] = browser.layouts(&page, LIGHT).try_into().unwrap();
    assert!(laptop.ends.iter().any(|(_, end)| *end > LAPTOP), "{:?}", laptop.ends);
}

#[test]
fn a_page_that_is_too_wide_and_an_empty_chart_would_be_noticed() {
    let Some(browser) = Browser::found() else { return };
    let page = "<body><div style='width: 500px'>wide</div><figure id=empty><svg></svg></figure>";
    let [phone, tablet, _] = browser.layouts(page, LIGHT).try_into().unwrap();
    assert!(phone.overflow > 100.0 && tablet.overflow == 0.0);
    assert_eq!(phone.charts, [("empty".to_owned(), 0.0)]);
}

#[test]
fn the_page_is_dark_where_dark_is_asked_for() {
    let Some(browser) = Browser::found() else { return };
    let [page, ..] = pages();
    let brightness = |scheme| browser.layouts(&page, scheme)[0].brightness;
    let (light, dark) = (brightness(LIGHT), brightness(DARK));
    assert!(light > 600 && dark < 150, "light {light}, dark {dark}");
}

#[test]
fn the_page_prints() {
    let Some(browser) = Browser::found() else { return };
    for page in pages() {
        let pdf = browser.print(&page);
        assert!(pdf.starts_with(b"%PDF-"));
        let sheets = String::from_utf8_lossy(&pdf).matches("/Type /Page\n").count();
        assert!((2..=LONGEST_PRINT).contains(&sheets), "{sheets} sheets");
    }
}

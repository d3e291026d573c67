//! Screen: a picture on a terminal, again and again, as `watch` shows it. What was on the terminal before is there again afterwards.

use std::sync::Arc;

use locktender::host::sync::Mutex;
use nix::sys::signal::Signal;
use rustix::termios::tcgetwinsize;
use signal_hook::low_level::exit;

use super::signals::{ENDS, To, receive, suffer};
use super::written::write_out;
use crate::exit::signalled;
use crate::operator::Stop;

/// Another screen is shown, and the one before comes back.
const ENTER: &str = "\u{1b}[?1049h";
const LEAVE: &str = "\u{1b}[?1049l";

/// The cursor goes to the corner; the rest of a line is deleted, and the rest of the screen.
const CORNER: &str = "\u{1b}[H";
const REST_OF_LINE: &str = "\u{1b}[K\n";
const REST: &str = "\u{1b}[J";

/// A terminal that is the standard output.
pub(crate) struct Screen {
    /// Whether it is entered: to draw, leave or enter locks it.
    entered: Arc<Mutex<bool>>,
}

impl Screen {
    pub(crate) fn enter() -> Result<Self, Stop> {
        let entered = Arc::new(Mutex::new(true));
        let shared = Arc::clone(&entered);
        let got = move |signal| {
            let mut entered = shared.lock();
            leave(&mut entered);
            suffer(signal, To::Itself);
            if signal != Signal::SIGTSTP {
                // As process 1.
                exit(signalled(signal as i32).into());
            }
            *entered = true;
            let _ = write_out(ENTER.as_bytes());
        };
        receive(ENDS.into_iter().chain([Signal::SIGTSTP]), got).map_err(Stop::Unwritten)?;
        write_out(ENTER.as_bytes()).map_err(Stop::Unwritten)?;
        Ok(Self { entered })
    }

    /// Shows the lines that fit.
    pub(crate) fn show(&self, text: &str) -> Result<(), Stop> {
        let _entered = self.entered.lock();
        let (width, height) = tcgetwinsize(std::io::stdout()).map_or((80, 24), |size| (size.ws_col.into(), size.ws_row.into()));
        write_out(picture(text, width, height).as_bytes()).map_err(Stop::Unwritten)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave(&mut self.entered.lock());
    }
}

fn leave(entered: &mut bool) {
    if std::mem::take(entered) {
        let _ = write_out(LEAVE.as_bytes());
    }
}

fn picture(text: &str, width: usize, height: usize) -> String {
    let count = text.lines().count();
    let shown = if count > height { height.saturating_sub(1) } else { count };
    let mut lines: Vec<String> = text.lines().take(shown).map(|line| line.chars().take(width).collect()).collect();
    if count > shown {
        lines.push(format!("… {} more lines", count - shown).chars().take(width).collect());
    }
    format!("{CORNER}{}{REST}", lines.join(REST_OF_LINE) + "\u{1b}[K")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_fits() {
        let shown = |text: &str, width, height| {
            let picture = picture(text, width, height);
            picture.strip_prefix(CORNER).unwrap().strip_suffix("\u{1b}[K\u{1b}[J").unwrap().replace(REST_OF_LINE, "/")
        };
        assert_eq!(shown("one\ntwo\n", 80, 24), "one/two");
        assert_eq!(shown("one\ntwo\n", 2, 2), "on/tw");
        assert_eq!(shown("1\n2\n3\n4\n", 80, 3), "1/2/… 2 more lines");
        assert_eq!(shown("1\n2\n3\n", 80, 3), "1/2/3");
        assert_eq!(shown("", 80, 3), "");
    }
}

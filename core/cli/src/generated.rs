//! Texts that are generated from the arguments: completions for shells, and manual pages.

use std::io::Write;

use clap::builder::PossibleValuesParser;
use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;

use super::messages::Messages;
use super::system::write_out;

/// What there are manual pages of, beside that of all.
pub(super) const SUBCOMMANDS: [&str; 17] = [
    "run",
    "job",
    "cron-job",
    "lead",
    "hold",
    "ls",
    "show",
    "history",
    "wait",
    "watch",
    "break",
    "reset",
    "quorum",
    "doctor",
    "demo",
    "completions",
    "man",
];

/// Generates shell completions
#[derive(Debug, Args)]
pub(super) struct Completions {
    #[arg(value_enum)]
    shell: Shell,
}

/// Writes a manual page, for `man -l -`
#[derive(Debug, Args)]
pub(super) struct Manual {
    /// The subcommand that it is about [default: all, in short]
    #[arg(value_parser = PossibleValuesParser::new(SUBCOMMANDS), hide_possible_values = true)]
    subcommand: Option<String>,
}

pub(super) fn completions(mut command: Command, options: &Completions) -> u8 {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut command, "locktender", &mut script);
    let script = String::from_utf8_lossy(&script);
    let whole = match options.shell {
        Shell::Bash => script.replace("complete -F _locktender ", "complete -F _locktender_or_command ") + BASH,
        Shell::Zsh => [
            "#compdef locktender\n",
            ZSH,
            &script
                .replace("    _locktender \"$@\"", "    _locktender_or_command \"$@\"")
                .replace("compdef _locktender locktender", "compdef _locktender_or_command locktender"),
        ]
        .concat(),
        Shell::Fish => [&*script, FISH].concat(),
        _ => script.into_owned(),
    };
    written(whole.as_bytes())
}

/// Behind `--` a line is completed as if the command stood alone.
const BASH: &str = r#"
_locktender_or_command() {
    local at
    for ((at = 1; at < COMP_CWORD; at++)); do
        if [[ ${COMP_WORDS[at]} == -- ]]; then
            if declare -F _command_offset >/dev/null; then
                _command_offset $((at + 1))
            elif ((at + 1 == COMP_CWORD)); then
                mapfile -t COMPREPLY < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}")
            fi
            return
        fi
    done
    _locktender "$@"
}
"#;

const ZSH: &str = r#"
_locktender_or_command() {
    local at=${words[(ie)--]}
    if ((at < CURRENT)); then
        words=("${(@)words[at + 1, -1]}")
        ((CURRENT -= at))
        _normal
    else
        _locktender "$@"
    fi
}

"#;

const FISH: &str = r#"
function __fish_locktender_command
    set -l words (commandline -opc) (commandline -ct)
    set -l at (contains -i -- -- $words)
    complete -C (string join ' ' -- (string escape -- $words[(math $at + 1)..-2]) $words[-1])
end
complete -c locktender -n "contains -- -- (commandline -opc)" -f -a "(__fish_locktender_command)"
"#;

pub(super) fn manual(mut command: Command, options: &Manual) -> u8 {
    command.build();
    let about = options.subcommand.as_ref().and_then(|name| command.find_subcommand(name)).unwrap_or(&command).clone();
    let end = about.get_after_help().map(ToString::to_string).unwrap_or_default();
    let man = Man::new(about.after_help(""));
    let mut page = Vec::new();
    let sections = [
        Man::render_title,
        Man::render_name_section,
        Man::render_synopsis_section,
        Man::render_description_section,
        Man::render_options_section,
        Man::render_subcommands_section,
    ];
    // Nothing fails that is written to memory.
    for section in sections {
        let _ = section(&man, &mut page as &mut dyn Write);
    }
    page.extend(sections_of(&end).into_bytes());
    written(&page)
}

/// The end of the help as sections of a manual page: a line with a colon at its end is the heading of one, and the others stay as they are.
fn sections_of(help: &str) -> String {
    let mut page = String::new();
    for block in help.split("\n\n").filter(|block| !block.is_empty()) {
        let (heading, lines) = block.split_once(":\n").or_else(|| block.split_once(": ")).unwrap_or(("Notes", block));
        let heading = if heading == "Exit codes" { "EXIT STATUS".to_owned() } else { heading.to_uppercase() };
        let lines: String = lines.lines().map(|line| format!("\\&{}\n", line.replace('\\', "\\e").replace('-', "\\-"))).collect();
        page += &format!(".SH \"{heading}\"\n.nf\n{lines}.fi\n");
    }
    page
}

fn written(text: &[u8]) -> u8 {
    write_out(text).map_or_else(|error| Messages::for_operators(false).unwritten(&error), |()| 0)
}

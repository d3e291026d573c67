//! Page: the one page, as text. It needs nothing else: its style and its script are in it, and for a report its data, too.

use locktender::host::cli::draw;

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPTS: [&str; 4] =
    [include_str!("state.js"), include_str!("timeline.js"), include_str!("tables.js"), include_str!("page.js")];

/// A page, and the policy with which a browser shows it.
pub(super) struct Page {
    pub(super) text: String,
    pub(super) policy: String,
}

/// The page that follows changes. It believes only a stream that repeats the proof.
pub(super) fn live(proof: &str) -> Page {
    page("'self'", &format!(r#"{{"proof":"{proof}"}}"#))
}

/// A report. It connects to nothing.
pub(super) fn report(data: &str) -> Page {
    page("'none'", data)
}

fn page(connect: &str, data: &str) -> Page {
    // A script that hides in a name doesn't know it.
    let nonce = random();
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src {connect}; base-uri 'none'; form-action 'none'; \
         require-trusted-types-for 'script'"
    );
    let scripts = SCRIPTS.concat();
    // JSON without the character with which the end of an element begins.
    let data = data.replace('<', "\\u003c");
    let parts = PAGE.split("{{").map(|part| match part.split_once("}}") {
        Some(("policy", rest)) => [&policy, rest].concat(),
        Some(("nonce", rest)) => [&nonce, rest].concat(),
        Some(("style", rest)) => [STYLE, rest].concat(),
        Some(("script", rest)) => [&scripts, rest].concat(),
        Some(("data", rest)) => [&data, rest].concat(),
        _ => part.to_owned(),
    });
    Page { text: parts.collect(), policy: format!("{policy}; frame-ancestors 'none'") }
}

/// 128 random bits as text.
pub(super) fn random() -> String {
    format!("{:016x}{:016x}", draw(), draw())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_all_its_parts_and_a_policy_of_its_own() {
        let (one, other) = (live("secret"), live("secret"));
        assert_ne!(one.policy, other.policy);
        assert!(!one.text.contains("{{") && one.text.contains(STYLE) && one.text.contains(SCRIPTS[3]));
        assert!(one.policy.contains("connect-src 'self'") && !one.policy.contains("unsafe"));
        let named = one.text.replace("http://www.w3.org/2000/svg", "");
        assert!(!named.contains("http://") && !named.contains("https://") && !named.contains(" style="));
    }

    #[test]
    fn a_report_has_its_data_and_no_connection() {
        let report = report(r#"{"name":"</script><script>{{nonce}}<!--"}"#);
        assert!(report.text.contains(r#"{"name":"\u003c/script>\u003cscript>{{nonce}}\u003c!--"}"#));
        assert!(report.policy.contains("connect-src 'none'"));
    }
}

//! Source text with indentation, with the line breaks that rustfmt would choose.

/// One level of indentation in Rust.
const UNIT: &str = "    ";

/// Maximum columns of a line.
pub(super) const WIDTH: usize = 100;

/// Maximum columns of the arguments of a call, or the elements of a list, on one line.
const LIST_WIDTH: usize = 60;

/// Text under construction.
#[derive(Debug)]
pub(super) struct Text {
    out: String,
    depth: usize,
    /// One level of indentation.
    unit: &'static str,
}

impl Text {
    /// Rust text that begins at this depth.
    pub(super) fn at(depth: usize) -> Self {
        Self {
            depth,
            ..Self::with_unit(UNIT)
        }
    }

    /// Text with this unit of indentation.
    pub(super) fn with_unit(unit: &'static str) -> Self {
        let (out, depth) = (String::new(), 0);
        Self { out, depth, unit }
    }

    /// Appends a line; an empty one if `line` is empty.
    pub(super) fn line(&mut self, line: &str) {
        if !line.is_empty() {
            for _ in 0..self.depth {
                self.out += self.unit;
            }
            self.out += line;
        }
        self.out.push('\n');
    }

    /// Appends an empty line, unless a block was just opened.
    pub(super) fn gap(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("{\n") && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    /// Appends a line, and indents what follows.
    pub(super) fn open(&mut self, line: &str) {
        self.line(line);
        self.depth += 1;
    }

    /// Ends a block.
    pub(super) fn close(&mut self, line: &str) {
        self.depth = self.depth.saturating_sub(1);
        self.line(line);
    }

    /// Indents what follows by one level.
    pub(super) fn indent(&mut self) {
        self.depth += 1;
    }

    /// Closes a block that was just opened, on one line, without content.
    pub(super) fn undo_open(&mut self, line: &str) {
        self.depth = self.depth.saturating_sub(1);
        if let Some(head) = self.out.strip_suffix("{\n") {
            self.out = format!("{head}{line}\n");
        }
    }

    /// Rust documentation, a paragraph on one line.
    pub(super) fn doc(&mut self, text: &str) {
        self.line(format!("/// {}", in_one_line(text)).trim_end());
    }

    /// TypeScript documentation, on one line.
    pub(super) fn block_doc(&mut self, text: &str) {
        let text = in_one_line(text).replace("*/", "* /");
        self.line(&format!("/** {text} */"));
    }

    /// The head of a Rust function up to `end`, which is `{` or `;`. A return type begins with `-> `.
    pub(super) fn function(&mut self, head: &str, parameters: &[String], returns: &str, end: char) {
        let returns = if returns.is_empty() {
            String::new()
        } else {
            format!(" -> {returns}")
        };
        let end = if end == '{' { " {".to_owned() } else { end.to_string() };
        let line = format!("{head}({}){returns}{end}", parameters.join(", "));
        let width = self.column() + line.len();
        if width == WIDTH && end == ";" {
            // rustfmt does the same where only the semicolon is too much.
            self.line(&format!("{head}({})", parameters.join(", ")));
            self.line(&format!("{}{end}", returns.trim_start()));
        } else if width <= WIDTH {
            self.line(&line);
        } else {
            self.open(&format!("{head}("));
            for parameter in parameters {
                self.line(&format!("{parameter},"));
            }
            self.close(&format!("){returns}{end}"));
        }
        if end.ends_with('{') {
            self.depth += 1;
        }
    }

    /// A bracketed list between `head` and `tail`: on one line if short, else one element per line.
    pub(super) fn list(&mut self, head: &str, elements: &[String], tail: &str) {
        let line = elements.join(", ");
        let whole = self.column() + head.len() + line.len() + tail.len();
        if line.len() <= LIST_WIDTH && whole <= WIDTH {
            self.line(&format!("{head}{line}{tail}"));
        } else {
            self.open(head);
            for element in elements {
                self.line(&format!("{element},"));
            }
            self.close(tail);
        }
    }

    /// A method call on a field, broken before its last point if it is long.
    pub(super) fn chain(&mut self, receiver: &str, call: &str) {
        if receiver.len() + call.len() <= LIST_WIDTH {
            return self.line(&format!("{receiver}{call}"));
        }
        self.open(receiver);
        self.line(call);
        self.depth = self.depth.saturating_sub(1);
    }

    /// A list of imports: on one line if it fits, else filled lines.
    pub(super) fn fill(&mut self, head: &str, elements: &[String], tail: &str) {
        let line = format!("{head}{}{tail}", elements.join(", "));
        // rustfmt reserves columns for braces that are already counted.
        if self.column() + line.len() + "{}".len() <= WIDTH {
            return self.line(&line);
        }
        self.open(head);
        let mut line = String::new();
        for element in elements {
            if !line.is_empty() && self.column() + line.len() + element.len() + " ,".len() > WIDTH {
                self.line(&line);
                line.clear();
            }
            let blank = if line.is_empty() { "" } else { " " };
            line += &format!("{blank}{element},");
        }
        self.line(&line);
        self.close(tail);
    }

    /// Returns the text.
    pub(super) fn finish(self) -> String {
        self.out
    }

    /// Appends finished text unchanged.
    pub(super) fn put(&mut self, text: &str) {
        self.out += text;
    }

    fn column(&self) -> usize {
        self.depth * self.unit.len()
    }
}

/// Text from outside, made safe for a comment: each character that could end the line or reorder the displayed text
/// becomes a blank. All else is unchanged.
fn in_one_line(text: &str) -> String {
    let is_odd = |c: char| {
        c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.replace(is_odd, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_breaks_out_of_a_comment() {
        let text = "a\nb\rc\u{0}d\u{2028}e\u{2029}f\u{85}g\u{202e}h*/i*\n/j*";
        let mut rust = Text::at(1);
        rust.doc(text);
        assert_eq!(rust.finish(), "    /// a b c d e f g h*/i* /j*\n");
        let mut typescript = Text::with_unit("  ");
        typescript.block_doc(text);
        assert_eq!(typescript.finish(), "/** a b c d e f g h* /i* /j* */\n");
    }
}

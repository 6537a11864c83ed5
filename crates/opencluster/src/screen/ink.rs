//! The picture of `cluster::status`, taken apart into pieces of one colour each. `status` writes them
//! with escape codes, `top` and `demo` as spans.

use anstyle::{AnsiColor, Style};
use ratatui::style::{Color, Modifier};

/// Meaning of a piece of a picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ink {
    /// Names and numbers.
    Plain,
    /// Empty.
    Faint,
    Primary,
    Backup,
    /// Being filled, or just arrived.
    Fresh,
}

impl Ink {
    fn of(letter: char) -> Ink {
        match letter {
            'P' => Ink::Primary,
            'S' | 's' => Ink::Backup,
            '*' | '+' => Ink::Fresh,
            '.' => Ink::Faint,
            _ => Ink::Plain,
        }
    }

    /// Returns the style for text that goes through `anstream`.
    pub(crate) fn ansi(self) -> Style {
        match self {
            Ink::Plain => Style::new(),
            Ink::Faint => Style::new().dimmed(),
            Ink::Primary => AnsiColor::Green.on_default().bold(),
            Ink::Backup => AnsiColor::Cyan.on_default(),
            Ink::Fresh => AnsiColor::Yellow.on_default().bold(),
        }
    }

    /// Returns the style for a screen.
    pub(crate) fn style(self) -> ratatui::style::Style {
        let style = ratatui::style::Style::new();
        match self {
            Ink::Plain => style,
            Ink::Faint => style.add_modifier(Modifier::DIM),
            Ink::Primary => style.fg(Color::Green).add_modifier(Modifier::BOLD),
            Ink::Backup => style.fg(Color::Cyan),
            Ink::Fresh => style.fg(Color::Yellow).add_modifier(Modifier::BOLD),
        }
    }
}

/// Splits a picture into lines, and each line into pieces of one ink. The first line has names, the last one
/// totals, and every line in between begins with a bucket's name: letters in these have no meaning.
pub(crate) fn painted(picture: &str) -> Vec<Vec<(Ink, String)>> {
    let lines: Vec<&str> = picture.lines().collect();
    let last = lines.len().saturating_sub(1);
    let paint = |(number, line): (usize, &&str)| {
        let body = match line.find(' ') {
            Some(end) if number != 0 && number != last => end,
            _ => line.len(),
        };
        pieces(line, body)
    };
    lines.iter().enumerate().map(paint).collect()
}

fn pieces(line: &str, body: usize) -> Vec<(Ink, String)> {
    let mut pieces = vec![(Ink::Plain, line[..body].to_owned())];
    for letter in line[body..].chars() {
        let ink = Ink::of(letter);
        match pieces.last_mut() {
            Some((of, text)) if *of == ink => text.push(letter),
            Some(_) | None => pieces.push((ink, letter.to_string())),
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_marks_are_coloured_and_nothing_is_left_out() {
        let picture = "     P.S.   B\n#P   P*    +\n    1+0=1\n";
        let lines = painted(picture);
        let whole: Vec<String> =
            lines.iter().map(|line| line.iter().map(|(_, text)| text.as_str()).collect()).collect();
        assert_eq!(whole, picture.lines().collect::<Vec<_>>());
        assert!(lines[0].iter().chain(&lines[2]).all(|(ink, _)| *ink == Ink::Plain));
        let inks: Vec<Ink> = lines[1].iter().map(|(ink, _)| *ink).collect();
        use Ink::{Fresh, Plain, Primary};
        assert_eq!(inks, [Plain, Primary, Fresh, Plain, Fresh]);
    }
}

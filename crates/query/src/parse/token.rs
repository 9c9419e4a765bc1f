//! The words of the query language.

use crate::ast::Span;

/// Words that mean something to the grammar wherever they stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keyword {
    Select,
    Distinct,
    From,
    Where,
    Group,
    By,
    Having,
    Order,
    Limit,
    Offset,
    And,
    Or,
    Not,
    Between,
    In,
    Is,
    Null,
    Like,
    As,
    True,
    False,
}

const KEYWORDS: [(&str, Keyword); 21] = [
    ("SELECT", Keyword::Select),
    ("DISTINCT", Keyword::Distinct),
    ("FROM", Keyword::From),
    ("WHERE", Keyword::Where),
    ("GROUP", Keyword::Group),
    ("BY", Keyword::By),
    ("HAVING", Keyword::Having),
    ("ORDER", Keyword::Order),
    ("LIMIT", Keyword::Limit),
    ("OFFSET", Keyword::Offset),
    ("AND", Keyword::And),
    ("OR", Keyword::Or),
    ("NOT", Keyword::Not),
    ("BETWEEN", Keyword::Between),
    ("IN", Keyword::In),
    ("IS", Keyword::Is),
    ("NULL", Keyword::Null),
    ("LIKE", Keyword::Like),
    ("AS", Keyword::As),
    ("TRUE", Keyword::True),
    ("FALSE", Keyword::False),
];

impl Keyword {
    pub(super) fn of(word: &str) -> Option<Self> {
        KEYWORDS.iter().find(|(text, _)| word.eq_ignore_ascii_case(text)).map(|(_, keyword)| *keyword)
    }

    /// Whether the word may also name an array, where the grammar leaves no doubt.
    pub(super) fn is_soft(self) -> bool {
        matches!(self, Self::Group | Self::Order | Self::Limit | Self::Offset)
    }

    /// Whether the word is a value, so that an operator comes next.
    fn is_value(self) -> bool {
        self.is_soft() || matches!(self, Self::Null | Self::True | Self::False)
    }

    /// Whether a clause begins with it.
    pub(super) fn starts_clause(self) -> bool {
        use Keyword::{From, Group, Having, Limit, Offset, Order, Where};
        matches!(self, From | Where | Group | Having | Order | Limit | Offset)
    }
}

/// Operators and punctuation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Symbol {
    Plus,
    Minus,
    Star,
    Slash,
    SlashSlash,
    Percent,
    Power,
    Eq,
    NotEq,
    Lt,
    LtEq,
    Gt,
    GtEq,
    Ampersand,
    Pipe,
    Tilde,
    LeftParen,
    RightParen,
    Comma,
    Semicolon,
}

/// All symbols; a longer one comes before those that it begins with.
pub(super) const SYMBOLS: [(&str, Symbol); 23] = [
    ("**", Symbol::Power),
    ("//", Symbol::SlashSlash),
    ("==", Symbol::Eq),
    ("!=", Symbol::NotEq),
    ("<>", Symbol::NotEq),
    ("<=", Symbol::LtEq),
    (">=", Symbol::GtEq),
    ("+", Symbol::Plus),
    ("-", Symbol::Minus),
    ("*", Symbol::Star),
    ("/", Symbol::Slash),
    ("%", Symbol::Percent),
    ("^", Symbol::Power),
    ("=", Symbol::Eq),
    ("<", Symbol::Lt),
    (">", Symbol::Gt),
    ("&", Symbol::Ampersand),
    ("|", Symbol::Pipe),
    ("~", Symbol::Tilde),
    ("(", Symbol::LeftParen),
    (")", Symbol::RightParen),
    (",", Symbol::Comma),
    (";", Symbol::Semicolon),
];

/// What a token is. The text of words is that of their span.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind {
    Keyword(Keyword),
    /// An unquoted name or path.
    Word,
    /// A quoted name, without its quotes.
    Quoted(String),
    /// A string, without its quotes.
    Str(String),
    /// The magnitude of an integer, at most 2^127.
    Int(u128),
    Float(f64),
    Symbol(Symbol),
    /// Text that is no token: reported when the parser gets there, which knows what should have come.
    Bad(Box<BadToken>),
    End,
}

/// What is wrong with a piece of text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct BadToken {
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

/// A token and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) span: Span,
}

impl TokenKind {
    /// Whether the token ends a value, so that what follows is an operator and not an operand.
    pub(super) fn ends_value(&self) -> bool {
        match self {
            Self::Keyword(keyword) => keyword.is_value(),
            Self::Symbol(symbol) => *symbol == Symbol::RightParen,
            Self::Bad(_) | Self::End => false,
            Self::Word | Self::Quoted(_) | Self::Str(_) | Self::Int(_) | Self::Float(_) => true,
        }
    }
}

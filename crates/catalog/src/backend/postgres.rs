//! Catalogs in a PostgreSQL database, in the schema `sieva`.

use std::collections::HashMap;
use std::error::Error as _;

use ::postgres::binary_copy::BinaryCopyInWriter;
use ::postgres::config::{Config, SslMode};
use ::postgres::fallible_iterator::FallibleIterator;
use ::postgres::types::{IsNull, ToSql, Type, private::BytesMut, to_sql_checked};
use ::postgres::{Client, NoTls, Statement};
use sieva_types::{Error, ErrorKind, Result};

use super::schema::{self, Column, Dialect};
use super::{Cell, Row, Session, Table};
use crate::until;

/// Number of the lock that those who write take one after the other ("sieva" in ASCII).
const WRITER_LOCK: i64 = 0x0073_6965_7661;

/// A server and its database.
pub(super) struct Server {
    config: Config,
    name: String,
}

impl Server {
    pub(super) fn parse(url: &str) -> Result<Self> {
        let config: Config = url.parse().map_err(|_: ::postgres::Error| {
            // What is wrong with it may be a part of a password.
            let message = format!(
                "'{}' is not a valid URL of a PostgreSQL catalog",
                sieva_store::redacted_database(url)
            );
            Error::new(ErrorKind::InvalidValue, message).hint(
                "write it as postgresql://USER@HOST:PORT/DATABASE; in a password, '@', ':', '/' and '?' are \
                 percent-encoded",
            )
        })?;
        if config.get_ssl_mode() == SslMode::Require {
            let message = "the PostgreSQL catalog asks for TLS (sslmode=require), which is not built in";
            return Err(Error::new(ErrorKind::Unsupported, message)
                .hint("reach it through a local socket or a tunnel"));
        }
        let host = match config.get_hosts().first() {
            // A password with '@' in it begins in what is taken for the host.
            Some(::postgres::config::Host::Tcp(host)) => {
                host.rsplit('@').next().unwrap_or_default().to_owned()
            }
            Some(::postgres::config::Host::Unix(path)) => path.display().to_string(),
            None => "no host".to_owned(),
        };
        let name = format!("PostgreSQL at {host}, database {}", config.get_dbname().unwrap_or("by default"));
        Ok(Self { config, name })
    }

    pub(super) fn open(&self, read_only: bool) -> Result<(Box<dyn Session>, bool)> {
        let mut config = self.config.clone();
        config.connect_timeout(std::time::Duration::from_secs(10)).application_name("sieva");
        let client = config.connect(NoTls).map_err(|e| {
            Error::new(ErrorKind::Io, format!("cannot connect to {}: {}", self.name, told(&e)))
                .hint("check that the server runs and that the user may use this database")
        })?;
        let mut session = PostgresSession { client, name: self.name.clone(), statements: HashMap::new() };
        session.script(
            "SET search_path TO sieva; SET lock_timeout = '30s'; SET statement_timeout = '600s'; SET client_min_messages = warning",
        )?;
        schema::prepare(&mut session, &self.name, read_only)?;
        Ok((Box::new(session), read_only))
    }
}

struct PostgresSession {
    client: Client,
    name: String,
    statements: HashMap<String, Statement>,
}

/// Statements that are kept prepared.
const KEPT_STATEMENTS: usize = 256;

impl PostgresSession {
    fn prepared(&mut self, sql: &str) -> Result<Statement> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql).map_err(|e| error(&self.name, &e))?;
        if self.statements.len() >= KEPT_STATEMENTS {
            self.statements.clear();
        }
        self.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }
}

impl ToSql for Cell {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> std::result::Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Int(v) if *ty == Type::INT4 => i32::try_from(*v)?.to_sql(ty, out),
            Self::Int(v) => v.to_sql(ty, out),
            Self::Real(v) => v.to_sql(ty, out),
            Self::Text(v) => v.to_sql(ty, out),
            Self::Blob(v) => v.as_slice().to_sql(ty, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

fn references(cells: &[Cell]) -> Vec<&(dyn ToSql + Sync)> {
    cells.iter().map(|cell| cell as &(dyn ToSql + Sync)).collect()
}

impl Session for PostgresSession {
    fn run(&mut self, sql: &str, parameters: &[Cell]) -> Result<u64> {
        let statement = self.prepared(sql)?;
        self.client.execute(&statement, &references(parameters)).map_err(|e| error(&self.name, &e))
    }

    fn each(
        &mut self,
        sql: &str,
        parameters: &[Cell],
        each: &mut dyn FnMut(&Row<'_>) -> Result<bool>,
    ) -> Result<()> {
        let statement = self.prepared(sql)?;
        let name = self.name.clone();
        let mut rows =
            self.client.query_raw(&statement, references(parameters)).map_err(|e| error(&name, &e))?;
        let mut cells = vec![Cell::Null; statement.columns().len()];
        while let Some(row) = rows.next().map_err(|e| error(&name, &e))? {
            if until::is_over() {
                return Err(until::over());
            }
            for (column, cell) in cells.iter_mut().enumerate() {
                *cell = read_cell(&row, column).map_err(|e| error(&name, &e))?;
            }
            if !each(&Row(&cells))? {
                break;
            }
        }
        Ok(())
    }

    fn insert(&mut self, table: &Table, rows: &mut dyn Iterator<Item = Vec<Cell>>) -> Result<()> {
        let names: Vec<&str> = table.columns.iter().map(|(name, _)| *name).collect();
        let types: Vec<Type> = table.columns.iter().map(|(_, column)| type_of(*column)).collect();
        let sql = format!("COPY {} ({}) FROM STDIN BINARY", table.name, names.join(", "));
        let name = &self.name;
        let writer = self.client.copy_in(&sql).map_err(|e| error(name, &e))?;
        let mut writer = BinaryCopyInWriter::new(writer, &types);
        for row in rows {
            writer.write(&references(&row)).map_err(|e| error(name, &e))?;
        }
        writer.finish().map_err(|e| error(name, &e))?;
        Ok(())
    }

    fn script(&mut self, sql: &str) -> Result<()> {
        self.client.batch_execute(sql).map_err(|e| error(&self.name, &e))
    }

    fn begin(&mut self, write: bool) -> Result<()> {
        if write {
            self.script(&format!("BEGIN; SELECT pg_advisory_xact_lock({WRITER_LOCK})"))?;
            // Its tables live here; making it is no change to a catalog that is there.
            return self.script("CREATE SCHEMA IF NOT EXISTS sieva");
        }
        self.script("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    }

    fn end(&mut self, commit: bool) -> Result<()> {
        self.script(if commit { "COMMIT" } else { "ROLLBACK" })
    }

    fn table_names(&mut self) -> Result<Vec<String>> {
        let sql = "SELECT tablename::text FROM pg_catalog.pg_tables WHERE schemaname = 'sieva'";
        super::collect(self, sql, &[], |row| row.text(0).map(str::to_owned))
    }

    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }
}

fn type_of(column: Column) -> Type {
    match column {
        Column::Int => Type::INT8,
        Column::Real => Type::FLOAT8,
        Column::Text => Type::TEXT,
        Column::Blob => Type::BYTEA,
    }
}

fn read_cell(row: &::postgres::Row, column: usize) -> std::result::Result<Cell, ::postgres::Error> {
    let ty = row.columns()[column].type_();
    Ok(match *ty {
        Type::INT8 => row.try_get::<_, Option<i64>>(column)?.into(),
        Type::INT4 => row.try_get::<_, Option<i32>>(column)?.map(i64::from).into(),
        Type::FLOAT8 => row.try_get::<_, Option<f64>>(column)?.into(),
        Type::BYTEA => row.try_get::<_, Option<Vec<u8>>>(column)?.into(),
        _ => row.try_get::<_, Option<String>>(column)?.into(),
    })
}

/// The error with its causes: its own text says little.
fn told(e: &::postgres::Error) -> String {
    let mut text = e.to_string();
    let mut cause = e.source();
    while let Some(e) = cause {
        let more = e.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = e.source();
    }
    text
}

fn error(name: &str, e: &::postgres::Error) -> Error {
    let code = e.code().map_or("", |code| code.code());
    let new = |kind| Error::new(kind, format!("catalog in {name}: {}", told(e)));
    // Classes of PostgreSQL's appendix A, "error codes".
    match code {
        "42501" | "25006" => {
            new(ErrorKind::PermissionDenied).hint("ask for the right to write in the schema sieva")
        }
        "55P03" => {
            let message =
                format!("catalog in {name}: it is locked by another process, and stayed so for 30 s");
            Error::new(ErrorKind::Io, message).hint("try again when that process has ended")
        }
        "53100" => new(ErrorKind::Io).hint("the server's disk is full; nothing was changed"),
        "XX001" | "XX002" => {
            new(ErrorKind::CorruptFile).hint("the server's tables are damaged: restore them")
        }
        _ => new(ErrorKind::Io),
    }
}

//! What the server says of a text as a value of a type, and what we say.

use pgformat::heap::tuple::TupleBuilder;
use pgformat::layout::{AttrLen, AttributeLayout, Compression, Storage};
use pgformat::version::MajorVersion;
use pgpagewrite::catalog::{Column, read};
use pgpagewrite::record::Encoding;
use pgpagewrite::types::datetime::{DateOrder, DateTimeSettings, IntervalStyle, ZoneDb};
use pgpagewrite::types::{Encoder, Scratch, Settings, TypeDescription, TypeKind};
use postgres::error::DbError;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;
use support::Server;

/// A value as one side has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Stored bytes (varlenas with their header) and what the output function gives.
    Stored { bytes: Vec<u8>, text: String },
    /// Refused.
    Refused {
        sqlstate: String,
        message: String,
        detail: Option<String>,
        hint: Option<String>,
    },
}

/// The settings that our side works under for a database of a server.
pub(crate) fn settings(server: &Server, database: &str) -> Settings {
    let version = MajorVersion::from_version_num(server.version() * 10_000).unwrap();
    let share_dir = server.value(
        database,
        "SELECT setting FROM pg_config WHERE name = 'SHAREDIR'",
    );
    let zones = Arc::new(ZoneDb::open(share_dir.as_ref(), "Default").expect("the server's zones"));
    let encoding = server.value(database, "SHOW server_encoding");
    Settings {
        version,
        encoding: Encoding::by_name(&encoding).expect("an encoding that we know"),
        array_nulls: server.value(database, "SHOW array_nulls") == "on",
        datetime: DateTimeSettings::new(
            DateOrder::Mdy,
            IntervalStyle::Postgres,
            zones.zone("UTC").expect("a zone of the server"),
            zones,
            0,
            version,
        ),
    }
}

/// A type as pg_type describes it, in a database.
pub(crate) struct Type {
    database: String,
    pub(crate) oid: u32,
    pub(crate) typmod: i32,
    pub(crate) layout: AttributeLayout,
    /// What we read of the type.
    pub(crate) column: Column,
    /// Reads the text $1; `None` where only COPY reads it as COPY does.
    input: Option<String>,
    output: String,
    base: String,
    /// As it was written.
    sql: String,
}

/// Whether a cast from text is a call of the input function and nothing else: a cast to a length
/// cuts what is too long.
fn is_cast_as_it_is_read(column: &Column) -> bool {
    let kind = |description: &TypeDescription| description.kind.clone();
    match column.description.as_deref().map(kind) {
        Some(TypeKind::Enum(_)) => true,
        Some(TypeKind::Array(element)) => {
            column.typmod == -1 && !matches!(element.kind, TypeKind::Domain(_))
        }
        _ => false,
    }
}

/// Looks a type up, written as in SQL with its modifier.
pub(crate) fn describe(server: &Server, database: &str, sql_type: &str) -> Type {
    let mut client = server.connect(database);
    client
        .batch_execute(&format!("CREATE TEMP TABLE described (v {sql_type})"))
        .unwrap();
    let row = client
        .query_one(
            "SELECT t.oid, a.atttypmod, t.typlen, t.typalign::text, t.typbyval,
                    i.proname::text, i.pronargs, i.prorettype = t.oid, o.proname::text,
                    quote_ident(n.nspname) || '.' || quote_ident(t.typname)
               FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
               JOIN pg_namespace n ON n.oid = t.typnamespace
               JOIN pg_proc i ON i.oid = t.typinput JOIN pg_proc o ON o.oid = t.typoutput
              WHERE a.attrelid = 'described'::regclass AND a.attname = 'v'",
            &[],
        )
        .unwrap();
    let (oid, typmod): (u32, i32) = (row.get(0), row.get(1));
    let (len, align): (i16, String) = (row.get(2), row.get(3));
    let (input, arguments, output, base): (String, i16, String, String) =
        (row.get(5), row.get(6), row.get(8), row.get(9));
    let gives_the_type: bool = row.get(7);
    let mut described = read::relation(&mut client, "described").expect("the table");
    let column = described.columns.remove(0);
    let input = match arguments {
        _ if is_cast_as_it_is_read(&column) => Some(format!("$1::{base}")),
        _ if !gives_the_type => None,
        1 => Some(format!("{input}(textout($1))")),
        _ => Some(format!("{input}(textout($1), 0, {typmod})")),
    };
    Type {
        database: database.to_owned(),
        oid,
        typmod,
        layout: AttributeLayout {
            len: AttrLen::from_attlen(len).unwrap(),
            align: AttributeLayout::align_from_char(align.as_bytes()[0]).unwrap(),
            by_value: row.get(4),
            storage: if len == -1 {
                Storage::Extended
            } else {
                Storage::Plain
            },
            compression: Compression::Pglz,
        },
        column,
        input,
        output,
        base,
        sql: sql_type.to_owned(),
    }
}

/// The server's outcomes, in order, and for each that was stored its rank in the type's order
/// (equal values have one rank) if `ranked`.
///
/// Values lie in a table without compression, so the texts must be shorter than 2000 bytes.
pub(crate) fn of_server(
    server: &Server,
    ty: &Type,
    texts: &[String],
    ranked: bool,
) -> Vec<(Outcome, Option<i64>)> {
    let mut client = server.connect(&ty.database);
    let Type {
        base,
        input,
        output,
        ..
    } = ty;
    client
        .batch_execute(&format!(
            "SET client_min_messages = warning;
             SET enable_nestloop = off;
             CREATE EXTENSION IF NOT EXISTS pageinspect;
             DROP TABLE IF EXISTS kept, refused, texts;
             CREATE TABLE texts (id int, s text);
             CREATE TABLE kept (v {base}, id int);
             CREATE TABLE refused (id int, state text, message text, detail text, hint text);
             DO $do$ BEGIN
               IF (SELECT attlen = -1 FROM pg_attribute
                    WHERE attrelid = 'kept'::regclass AND attname = 'v') THEN
                 ALTER TABLE kept ALTER v SET STORAGE EXTERNAL;
               END IF;
             END $do$;"
        ))
        .unwrap();
    client
        .execute(
            "INSERT INTO texts SELECT n, s FROM unnest($1::text[]) WITH ORDINALITY u(s, n)",
            &[&texts],
        )
        .unwrap();
    match input {
        Some(input) => insert_all(&mut client, input),
        None => copy_all(&mut client, ty, texts),
    }
    let mut outcomes: Vec<Option<(Outcome, Option<i64>)>> = vec![None; texts.len()];
    for row in client
        .query(
            &format!(
                "SELECT t.id, s.split[1], {text}, r.r
                   FROM (SELECT p.b, i.lp,
                                tuple_data_split('kept'::regclass, i.t_data, i.t_infomask,
                                                 i.t_infomask2, i.t_bits) split
                           FROM generate_series(0, pg_relation_size('kept') / 8192 - 1) p(b),
                                heap_page_items(get_raw_page('kept', p.b::int)) i
                          WHERE i.t_data IS NOT NULL) s
                   JOIN kept t ON t.ctid = format('(%s,%s)', s.b, s.lp)::tid
                   LEFT JOIN (SELECT id, {order} r FROM kept) r ON r.id = t.id",
                // Half a character cannot be sent from a database of another encoding.
                text = if input.is_none() {
                    "textsend(t.v::text)".to_owned()
                } else if ty.database == "postgres" {
                    format!("textsend(textin({output}(t.v)))")
                } else {
                    "''::bytea".to_owned()
                },
                order = if ranked {
                    "dense_rank() OVER (ORDER BY v)"
                } else {
                    "NULL::bigint"
                }
            ),
            &[],
        )
        .unwrap()
    {
        let id: i32 = row.get(0);
        outcomes[id as usize - 1] = Some((
            Outcome::Stored {
                bytes: row.get(1),
                // Before 15 a "char" may be written as half a character.
                text: String::from_utf8(row.get(2)).unwrap_or_default(),
            },
            row.get(3),
        ));
    }
    for row in client.query("SELECT * FROM refused", &[]).unwrap() {
        let id: i32 = row.get(0);
        let not_empty = |text: String| (!text.is_empty()).then_some(text);
        outcomes[id as usize - 1] = Some((
            Outcome::Refused {
                sqlstate: row.get(1),
                message: row.get(2),
                detail: not_empty(row.get(3)),
                hint: not_empty(row.get(4)),
            },
            None,
        ));
    }
    outcomes
        .into_iter()
        .map(|outcome| outcome.expect("an outcome for each text"))
        .collect()
}

/// Has the input function read each of `texts`.
fn insert_all(client: &mut postgres::Client, input: &str) {
    client
        .batch_execute(&format!(
            "DO $do$
             DECLARE r record; d text; h text;
             BEGIN
               FOR r IN SELECT * FROM texts ORDER BY id LOOP
                 BEGIN
                   EXECUTE 'INSERT INTO kept SELECT {input}, $2' USING r.s, r.id;
                 EXCEPTION WHEN OTHERS THEN
                   GET STACKED DIAGNOSTICS d = PG_EXCEPTION_DETAIL, h = PG_EXCEPTION_HINT;
                   INSERT INTO refused VALUES (r.id, SQLSTATE, SQLERRM, d, h);
                 END;
               END LOOP;
             END $do$"
        ))
        .unwrap();
}

/// Has COPY read each text, where SQL cannot call the input function.
fn copy_all(client: &mut postgres::Client, ty: &Type, texts: &[String]) {
    client
        .batch_execute(&format!(
            "DROP TABLE kept; CREATE TABLE kept (v {}, id int);
             DO $do$ BEGIN
               IF (SELECT attlen = -1 FROM pg_attribute
                    WHERE attrelid = 'kept'::regclass AND attname = 'v') THEN
                 ALTER TABLE kept ALTER v SET STORAGE EXTERNAL;
               END IF;
             END $do$;",
            ty.sql
        ))
        .unwrap();
    let mut transaction = client.transaction().unwrap();
    let refused = transaction
        .prepare("INSERT INTO refused VALUES ($1, $2, $3, $4, $5)")
        .unwrap();
    for (text, id) in texts.iter().zip(1_i32..) {
        let escaped = text
            .replace('\\', "\\\\")
            .replace('\t', "\\t")
            .replace('\n', "\\n")
            .replace('\r', "\\r");
        let mut savepoint = transaction.savepoint("text").unwrap();
        let mut writer = savepoint.copy_in("COPY kept FROM STDIN").unwrap();
        writeln!(writer, "{escaped}\t{id}").unwrap();
        match writer.finish() {
            Ok(_) => savepoint.commit().unwrap(),
            Err(error) => {
                savepoint.rollback().unwrap();
                let error: &DbError = error.as_db_error().expect("the server's word");
                let state = error.code().code();
                let (detail, hint) = (error.detail().unwrap_or(""), error.hint().unwrap_or(""));
                transaction
                    .execute(&refused, &[&id, &state, &error.message(), &detail, &hint])
                    .unwrap();
            }
        }
    }
    transaction.commit().unwrap();
}

/// Our outcomes, in order.
pub(crate) fn of_ours(server: &Server, ty: &Type, texts: &[String]) -> Vec<Outcome> {
    let settings = settings(server, &ty.database);
    let description = ty.column.description.as_ref().expect("a type");
    let encoder = Encoder::of_type(description, ty.typmod, &settings).expect("a native type");
    let mut builder = TupleBuilder::new(Arc::from([ty.layout]));
    let mut scratch = Scratch::new();
    texts
        .iter()
        .map(|field| {
            builder.clear();
            builder.begin_row();
            let field = match settings.encoding {
                Encoding::SingleByte("LATIN1") => field.chars().map(|c| c as u8).collect(),
                _ => field.as_bytes().to_vec(),
            };
            match encoder.encode(&field, &mut scratch, &settings, &mut builder) {
                Ok(()) => {
                    builder.finish_row();
                    let stored = builder.attribute(0).expect("a value");
                    Outcome::Stored {
                        bytes: stored.to_vec(),
                        text: ty.column.output(Some(stored)),
                    }
                }
                Err(e) => {
                    // Nothing has been put: the row can still take its value.
                    builder.put_null();
                    builder.finish_row();
                    Outcome::Refused {
                        sqlstate: e.sqlstate.to_owned(),
                        message: e.message,
                        detail: e.detail,
                        hint: e.hint,
                    }
                }
            }
        })
        .collect()
}

/// Has us read fields of any bytes; how many were stored.
pub(crate) fn stored_by_us(server: &Server, ty: &Type, fields: &[Vec<u8>]) -> usize {
    let settings = settings(server, &ty.database);
    let description = ty.column.description.as_ref().expect("a type");
    let encoder = Encoder::of_type(description, ty.typmod, &settings).expect("a native type");
    let mut builder = TupleBuilder::new(Arc::from([ty.layout]));
    let mut scratch = Scratch::new();
    let mut stored = 0;
    for field in fields {
        builder.clear();
        builder.begin_row();
        match encoder.encode(field, &mut scratch, &settings, &mut builder) {
            Ok(()) => stored += 1,
            Err(_) => builder.put_null(),
        }
        builder.finish_row();
        let _ = ty.column.output(builder.attribute(0));
    }
    stored
}

/// Asserts that both sides say the same of each text.
pub(crate) fn assert_same(
    server: &Server,
    sql_type: &str,
    texts: &[String],
    ours: &[Outcome],
    theirs: &[(Outcome, Option<i64>)],
) {
    let mut report = String::new();
    let mut differing = 0;
    for ((text, our), (their, _)) in texts.iter().zip(ours).zip(theirs) {
        let unreadable = matches!(
            (our, their),
            (Outcome::Stored { bytes: a, .. }, Outcome::Stored { bytes: b, text })
                if a == b && text.is_empty() && server.version() == 14
        );
        if our != their && !unreadable {
            differing += 1;
            if differing <= 20 {
                let _ = writeln!(report, "{text:?}\n  ours   {our:?}\n  theirs {their:?}");
            }
        }
    }
    assert!(
        differing == 0,
        "{sql_type} on PostgreSQL {}: {differing} of {} differ\n{report}",
        server.version(),
        texts.len()
    );
    let stored = theirs
        .iter()
        .filter(|(o, _)| matches!(o, Outcome::Stored { .. }))
        .count();
    eprintln!(
        "{sql_type} on PostgreSQL {}: {stored} stored, {} refused alike",
        server.version(),
        texts.len() - stored
    );
}

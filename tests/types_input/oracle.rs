//! What the server says of a text as a value of a type, and what we say.

use pgformat::datum::text;
use pgformat::heap::tuple::TupleBuilder;
use pgformat::layout::{AttrLen, AttributeLayout, Compression, Storage};
use pgformat::version::MajorVersion;
use pgpagewrite::record::Encoding;
use pgpagewrite::types::datetime::{DateOrder, DateTimeSettings, IntervalStyle, ZoneDb};
use pgpagewrite::types::{Encoder, Scratch, Settings};
use std::fmt::Write as _;
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
    /// Calls the input function on `textout($1)`.
    input: String,
    output: String,
    base: String,
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
                    i.proname::text, i.pronargs, t.typelem, o.proname::text,
                    quote_ident(t.typname)
               FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
               JOIN pg_proc i ON i.oid = t.typinput JOIN pg_proc o ON o.oid = t.typoutput
              WHERE a.attrelid = 'described'::regclass AND a.attname = 'v'",
            &[],
        )
        .unwrap();
    let (oid, typmod): (u32, i32) = (row.get(0), row.get(1));
    let (len, align): (i16, String) = (row.get(2), row.get(3));
    let (input, arguments, output, base): (String, i16, String, String) =
        (row.get(5), row.get(6), row.get(8), row.get(9));
    let input = if arguments == 1 {
        format!("{input}(textout($1))")
    } else {
        format!("{input}(textout($1), 0, {typmod})")
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
        input,
        output,
        base: format!("pg_catalog.{base}"),
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
                text = if ty.database == "postgres" {
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

/// Our outcomes, in order.
pub(crate) fn of_ours(server: &Server, ty: &Type, texts: &[String]) -> Vec<Outcome> {
    let settings = settings(server, &ty.database);
    let encoder = Encoder::resolve(ty.oid, ty.typmod, &settings).expect("a native type");
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
                        text: text::output(ty.oid, Some(stored)),
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

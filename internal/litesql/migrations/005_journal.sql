-- The journal: what happened to entities, in order, and how far projections have followed. One transaction at a time
-- writes, so seqs have no holes, and what can be seen is complete.
create table stint_events (
    seq         integer primary key autoincrement,
    kind        text    not null,
    entity      text    not null,
    version     integer not null,
    type        text    not null,
    schema      integer not null,
    correlation text    not null,
    causation   integer not null,
    at          integer not null,
    meta        text    not null,
    payload     blob    not null
) strict;
create unique index stint_events_entity on stint_events (kind, entity, version);

create table stint_cursors (
    name       text    primary key,
    seq        integer not null,
    inline     integer not null,
    failures   integer not null,
    failed_seq integer not null,
    last_error text    not null,
    parked     integer not null,
    retry_at   integer
) strict, without rowid;

-- Snapshots of entities, events that projections put aside.
create table stint_notes (
    space text not null,
    key   text not null,
    value blob not null,
    primary key (space, key)
) strict, without rowid;

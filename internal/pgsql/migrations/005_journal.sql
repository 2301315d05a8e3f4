-- The journal: what happened to entities, in order, and how far projections have followed.

-- seq is drawn by the insert and nowhere else, one at a time: readers prove from it that nothing is missing.
create table events (
    seq         bigint      not null generated always as identity (cache 1),
    version     bigint      not null,
    causation   bigint      not null,
    at          timestamptz not null,
    schema      integer     not null,
    kind        text        collate "C" not null,
    entity      text        collate "C" not null,
    type        text        collate "C" not null,
    correlation text        collate "C" not null,
    meta        text        not null,
    payload     bytea       not null,
    primary key (seq)
) with (autovacuum_vacuum_insert_scale_factor = 0.05, vacuum_truncate = off);
create unique index events_entity on events (kind, entity, version);

-- How many events each entity has. Whoever appends locks its row first, so that a conflict draws no seq.
create table entities (
    version bigint not null,
    kind    text   collate "C" not null,
    id      text   collate "C" not null,
    primary key (kind, id)
) with (fillfactor = 80, vacuum_truncate = off);

create table cursors (
    seq        bigint  not null,
    failed_seq bigint  not null,
    parked     bigint  not null,
    retry_at   timestamptz,
    failures   integer not null,
    inline     boolean not null,
    name       text    collate "C" not null,
    last_error text    not null,
    primary key (name)
) with (fillfactor = 50);

-- Snapshots of entities, events that projections put aside.
create table notes (
    space text  collate "C" not null,
    key   text  collate "C" not null,
    value bytea not null,
    primary key (space, key)
) with (vacuum_truncate = off);

create table t(id integer primary key, k integer, name text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 200000)
insert into t select i, (i * 2654435761) % 1000003, 'name of row ' || i from n;
create index k on t(k);
select sum(length(b.name)) from t a join t b on b.k = (a.k * 7) % 1000003;

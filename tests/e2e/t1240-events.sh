#!/usr/bin/env bash
# t1240-events.sh - what happened to a job is in the database, in order, across a kill -9 and a restart
. "$(dirname "$0")/lib.sh"
need "$MSSCHEDD" "$MSCTL" python3

cat >"$T/job.yaml" <<'YAML'
name: told
workers: 2
network: linear
dataset: {kind: nonlinear}
batch_size: 16
epochs: 1
loss: mse
optimizer: {kind: momentum, learning_rate: 0.005, momentum: 0.9}
seed: 1
YAML

# events of the stopped scheduler's database, one line each: number, kind, job
events() {
    python3 - "$T/a.db" <<'PY'
import sqlite3, sys
for row in sqlite3.connect(sys.argv[1]).execute("SELECT seq, kind, job FROM event ORDER BY seq"):
    print(*row)
PY
}

ok "a scheduler runs" start_sched a
ok "a job is queued" [ "$(ctl a submit "$T/job.yaml")" = 1 ]
ok "another one, too" [ "$(ctl a submit "$T/job.yaml")" = 2 ]
ok "the second is cancelled" ctl a cancel 2
stop a KILL
ok "it starts again after kill -9" start_sched a
ok "the first is cancelled" ctl a cancel 1
ok "TERM ends it cleanly" stop a
events >"$T/events"
cat >"$T/expected" <<'TEXT'
1 scheduler.started 0
2 job.submitted 1
3 job.submitted 2
4 job.cancelled 2
5 scheduler.started 0
6 job.cancelled 1
TEXT
ok "each change is told once, numbered without a gap" diff "$T/expected" "$T/events"
ok "with its reason" [ "$(python3 -c '
import sqlite3, sys
print(*sqlite3.connect(sys.argv[1]).execute(
    "SELECT count(*) FROM event WHERE kind = ? AND text LIKE ?", ("job.cancelled", "cancelled by %")).fetchone())
' "$T/a.db")" = 2 ]

# what is too much goes, and who asks for it is told
ok "some of them go" python3 - "$T/a.db" <<'PY'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("DELETE FROM event WHERE job = 2 OR kind = 'job.submitted'")
db.commit()
PY
ok "and a database with events is taken up again" start_sched a
# says JOB TEXT: of its events, on standard error; what is left stands in the table
says() { ctl a events "$1" 2>&1 >"$T/table" | grep -qF -- "$2"; }
ok "a job whose first events went is said" says 1 "older events of job 1 are not kept any more"
ok "and the others are shown" grep -q "job.cancelled.*cancelled by" "$T/table"
ok "one whose events all went, too" says 2 "the events of job 2 are not kept any more"
shows() { ctl a show "$1" | grep -qF -- "$2"; }
ok "and how it ended is still known" shows 2 "cancelled by"
ok "and one that there never was" says 77 "job 77 does not exist"
ok "a job that has them all is shown without a word" [ "$(ctl a submit "$T/job.yaml")" = 3 ]
ctl a events 3 >"$T/table" 2>"$T/said"
ok "nothing is said of it" [ ! -s "$T/said" ]
ok "it is shown" grep -q job.submitted "$T/table"
ok "TERM ends it" stop a
finish

/** Bash scripts of real programs, each in a folder of its own: what they print is the same each time. */

/** $AT: a file where a script says at which of its lines it is; absent: nowhere. $SIZE: how much is done; absent: little. */
const BEGIN = `set -e
[ -z "$AT" ] || trap 'printf "%-8s" $LINENO 1<>"$AT"' DEBUG
`;

const GIT = `
git init -q -b main repository
cd repository
git config user.name n; git config user.email e
for i in $(seq \${SIZE:-2}); do
  for f in a b c d; do echo "$i $f" > $f$i; done
  git add -A
  git commit -q -m "commit $i"
done
git fsck --strict --no-progress
git status --porcelain
git log --oneline | wc -l
cd ..
`;

const DD = `
dd if=/dev/zero of=zeros bs=64k count=$((\${SIZE:-2} * 30)) conv=fsync status=none
dd if=zeros bs=64k status=none | sha256sum
dd if=/dev/zero of=zeros bs=4k count=3 seek=5 conv=notrunc,fdatasync status=none
dd if=zeros of=copy bs=1M status=none
sha256sum copy
`;

const SQLITE = `
python3 - <<'END'
import os, sqlite3
rows = 25 * int(os.environ.get("SIZE", 2))
for mode in ("DELETE", "WAL"):
    db = sqlite3.connect(mode + ".db", isolation_level=None)
    db.execute("PRAGMA journal_mode = " + mode)
    db.execute("CREATE TABLE t (i INTEGER PRIMARY KEY, what TEXT)")
    for i in range(rows):
        db.execute("INSERT INTO t VALUES (?, ?)", (i, "x" * i))
        if i % 3 == 0: db.execute("UPDATE t SET what = what || 'y' WHERE i = ?", (i,))
    print(db.execute("SELECT count(*), sum(length(what)) FROM t").fetchone())
    print(db.execute("PRAGMA integrity_check").fetchone())
    db.close()
END
`;

export const REAL_PROGRAMS = {
  git: `${BEGIN}${GIT}`,
  dd: `${BEGIN}${DD}`,
  sqlite: `${BEGIN}${SQLITE}`,
  all: `${BEGIN}${GIT}${DD}${SQLITE}`,
} as const;
export type RealProgram = keyof typeof REAL_PROGRAMS;

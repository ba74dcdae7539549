/** What is in a folder, told by a child process: from the folder itself, or from the gateway by curl. */
import { check, type Place, type TestGateway } from "../../support/wsfs.ts";

/** By path below the folder; "." is the folder. Times are nanoseconds as text. */
export type Tree = Record<string, TreeEntry>;

export interface TreeEntry {
  readonly kind: "file" | "folder" | "symlink" | "other";
  /** Octal, with the kind's bits. */
  readonly mode: string;
  readonly mtime: string;
  readonly size: number;
  /** Of what is no folder. */
  readonly links?: number;
  readonly target?: string;
  /** Of a file whose mode lets whoever looks read it. */
  readonly sha256?: string;
  /** user.* in base64. */
  readonly xattrs?: Record<string, string>;
}

const READ_TREE = `
import base64, hashlib, json, os, stat, sys
# Root can look at all there is.
def may(path, how): return os.getuid() == 0 or os.access(path, how)
tree = {}
def look(path, shown):
    s = os.lstat(path)
    kind = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "symlink"}.get(stat.S_IFMT(s.st_mode), "other")
    entry = {"kind": kind, "mode": oct(s.st_mode), "mtime": str(s.st_mtime_ns), "size": s.st_size}
    if kind != "folder": entry["links"] = s.st_nlink
    if kind == "symlink": entry["target"] = os.readlink(path)
    if kind == "file":
        digest = hashlib.sha256()
        if may(path, os.R_OK):
            with open(path, "rb", buffering=0) as f:
                while data := f.read(1 << 20): digest.update(data)
            entry["sha256"] = digest.hexdigest()
    if kind in ("file", "folder") and may(path, os.R_OK):
        found = {n: base64.b64encode(os.getxattr(path, n)).decode() for n in os.listxattr(path) if n.startswith("user.")}
        if found: entry["xattrs"] = found
    tree[shown] = entry
    if kind == "folder" and may(path, os.R_OK | os.X_OK):
        for name in sorted(os.listdir(path)): look(path + "/" + name, name if shown == "." else shown + "/" + name)
look(sys.argv[1], ".")
print(json.dumps(tree))
`;

export async function readTree(place: Place, folder: string, timeoutMs = 120_000): Promise<Tree> {
  const script = `exec /usr/bin/python3 -c "$READ_TREE" "$FOLDER"`;
  const { stdout } = check(await place.sh(script, { env: { READ_TREE, FOLDER: folder }, timeoutMs }));
  return JSON.parse(stdout) as Tree;
}

/** Paths of folders, and of files with the digest of their bytes. */
export interface Contents {
  readonly folders: string[];
  readonly files: Record<string, string>;
}

export function contentsOf(tree: Tree): Contents {
  const entries = Object.entries(tree).sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    folders: entries.filter(([, { kind }]) => kind === "folder").map(([path]) => path),
    files: Object.fromEntries(entries.flatMap(([path, { sha256 }]) => (sha256 === undefined ? [] : [[path, sha256]]))),
  };
}

/** Walks the folders level by level and fetches every file: curl does all the talking. */
const READ_GATEWAY = `
import hashlib, json, os, subprocess, sys, tempfile
base, token, scratch = os.environ["BASE_URL"], os.environ["TOKEN_FILE"], os.environ["SCRATCH"]
def quoted(text): return '"' + text.replace("\\\\", "\\\\\\\\").replace('"', '\\\\"') + '"'
def curl(requests):
    "[(url, file)]; throws when one of them is not answered 200"
    config = f"fail\\nsilent\\nshow-error\\nheader = {quoted('Authorization: Bearer ' + open(token).read().strip())}\\n"
    for url, file in requests: config += f"url = {quoted(base + url)}\\noutput = {quoted(file)}\\n"
    if requests: subprocess.run(["curl", "--fail-early", "--globoff", "-K", "-"], input=config.encode(), check=True)
folders, files, level, counter = [], {}, [("/", None)], 0
todo = []
while level:
    pages = []
    for path, id in level:
        counter += 1
        query = "path=/" if id is None else f"parentId={id}"
        pages.append((path, f"/v1/nodes?{query}&pageSize=1000&pageNo=1", f"{scratch}/page-{counter}"))
        folders.append("." if path == "/" else path[1:])
    curl([(url, file) for _, url, file in pages])
    level = []
    while pages:
        more = []
        for path, url, file in pages:
            page = json.load(open(file))
            for node in page["items"]:
                below = path.rstrip("/") + "/" + node["name"]
                if node["path"] != below: sys.exit(f"path {node['path']}, expected {below}")
                if node["kind"] == "folder": level.append((below, node["id"]))
                elif node["attributes"].get("type") is None: todo.append((below[1:], node))
            if page["pageNo"] * page["pageSize"] < page["totalCount"]:
                counter += 1
                more.append((path, url.rsplit("=", 1)[0] + f"={page['pageNo'] + 1}", f"{scratch}/page-{counter}"))
        curl([(url, file) for _, url, file in more])
        pages = more
curl([(f"/v1/nodes/{node['id']}/content", f"{scratch}/content-{i}") for i, (_, node) in enumerate(todo)])
for i, (path, node) in enumerate(todo):
    digest = hashlib.sha256()
    file = f"{scratch}/content-{i}"
    if os.path.exists(file):
        with open(file, "rb") as f:
            while data := f.read(1 << 20): digest.update(data)
        os.unlink(file)
    elif node["size"] != 0: sys.exit(f"{path}: nothing came")
    if path in files: sys.exit(f"{path} is there twice")
    files[path] = digest.hexdigest()
print(json.dumps({"folders": sorted(folders), "files": dict(sorted(files.items()))}))
`;

export async function readGateway(place: Place, gateway: TestGateway, timeoutMs = 120_000): Promise<Contents> {
  const env = { READ_GATEWAY, BASE_URL: gateway.baseUrl, TOKEN_FILE: gateway.tokenFile };
  const script = `SCRATCH=$(mktemp -d ./http-XXXXXX); export SCRATCH; /usr/bin/python3 -c "$READ_GATEWAY"; code=$?; rm -rf "$SCRATCH"; exit $code`;
  const { stdout } = check(await place.sh(script, { env, timeoutMs }));
  return JSON.parse(stdout) as Contents;
}

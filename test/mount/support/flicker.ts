/**
 * Two programs in a folder: one writes, renames and removes, the other lists and reads, and holds
 * what it sees against a log of what the first has done. Both end by themselves.
 */

/**
 * The log has a line before each operation ("begin" with the names it touches) and one after
 * ("end" with what each of them then is: the content, or null). Both are written in one call.
 */
const COMMON = `
import json, os, sys, time
folder, log, until = sys.argv[1], sys.argv[2], time.time() + float(sys.argv[3])
# On a busy machine it takes longer until enough is done.
latest = until + 60
def goes_on(done, enough): return time.time() < until or (done < enough and time.time() < latest)
os.chdir(folder)
`;

export const WRITER = `${COMMON}
import random
chance = random.Random(int(sys.argv[4]))
out = os.open(log, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
def say(*line): os.write(out, (json.dumps(line) + "\\n").encode())
files, made = {}, 0
# Goes on where an earlier one with the same log has ended.
if os.path.exists(log):
    for line in open(log):
        word, what = json.loads(line)
        if word != "end": continue
        made += 1
        for name, text in what.items():
            files[name] = text
            if text is None: del files[name]
before = made
def write(name):
    global made
    made += 1
    text = f"content {made} {sys.argv[4]} " + "." * chance.randrange(2000)
    with open(name, "w") as f: f.write(text)
    return text
while goes_on(made - before, 40):
    kind = chance.choice(["create", "create", "write", "rename", "over", "delete", "save", "again"])
    if kind == "create" or len(files) < 5:
        if len(files) > 60: continue
        name = f"file-{chance.randrange(200)}"
        say("begin", [name])
        files[name] = write(name)
        say("end", {name: files[name]})
    elif kind == "write":
        name = chance.choice(list(files))
        say("begin", [name])
        files[name] = write(name)
        say("end", {name: files[name]})
    elif kind == "rename" or kind == "over":
        old = chance.choice(list(files))
        new = f"file-{chance.randrange(200)}" if kind == "rename" else chance.choice(list(files))
        if new == old: continue
        say("begin", [old, new])
        os.rename(old, new)
        files[new] = files.pop(old)
        say("end", {old: None, new: files[new]})
    elif kind == "save":
        name = chance.choice(list(files))
        say("begin", [name, ".tmp"])
        text = write(".tmp"); os.rename(".tmp", name)
        files[name] = text
        say("end", {name: text, ".tmp": None})
    elif kind == "again":
        name = chance.choice(list(files))
        say("begin", [name])
        os.unlink(name); files[name] = write(name)
        say("end", {name: files[name]})
    else:
        name = chance.choice(list(files))
        say("begin", [name])
        os.unlink(name); del files[name]
        say("end", {name: None})
    time.sleep(chance.random() * 0.05)
print(json.dumps(made))
`;

export const READER = `${COMMON}
source = os.open(log, os.O_CREAT | os.O_RDONLY)
state, busy, rest = {}, {}, b""
def catch_up():
    "Takes in what the log says by now; the names touched by what was under way or has happened since the last time."
    global rest
    touched = set(busy)
    while data := os.read(source, 1 << 20): rest += data
    *lines, rest = rest.split(b"\\n")
    for line in lines:
        word, what = json.loads(line)
        touched.update(what)
        if word == "begin":
            for name in what: busy[name] = True
        else:
            for name, text in what.items():
                busy.pop(name, None)
                if text is None: state.pop(name, None)
                else: state[name] = text
    return touched
def read(name):
    try:
        with open(name) as f: return f.read()
    except FileNotFoundError: return None
looks = 0
wrong = []
while goes_on(looks, 15) and not wrong:
    catch_up()
    expected = dict(state)
    listed = os.listdir(".")
    contents = {name: read(name) for name in listed}
    known = {name: os.path.exists(name) for name in (f"file-{i}" for i in range(200))}
    touched = catch_up()
    looks += 1
    if len(set(listed)) != len(listed): wrong.append(["listed twice", sorted(listed)])
    for name in set(listed) | set(expected):
        if name in touched: continue
        if name not in listed: wrong.append(["vanished from the listing", name])
        elif name not in expected: wrong.append(["came back in the listing", name])
        elif contents[name] != expected[name]: wrong.append(["reads", name, contents[name] and contents[name][:20], "expected", expected[name][:20]])
    for name, there in known.items():
        if name not in touched and there != (name in expected): wrong.append(["came back" if there else "vanished", name])
print(json.dumps({"looks": looks, "wrong": wrong[:10]}))
`;

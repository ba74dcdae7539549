{
  "target_defaults": {
    "cflags": [
      "-std=gnu11",
      "-Wall",
      "-Wextra",
      "-Wunused-parameter",
      "-Wshadow",
      "-fvisibility=hidden",
      # Hardening: a memory fault that is left ends the process and is hard to exploit.
      "-U_FORTIFY_SOURCE",
      "-D_FORTIFY_SOURCE=2",
      "-fstack-protector-strong",
      "-fstack-clash-protection"
    ],
    "ldflags": ["-Wl,-z,relro,-z,now"],
    "defines": ["_GNU_SOURCE"]
  },
  "targets": [
    {
      "target_name": "wsfs",
      # Never unloaded: Node unloads an addon when the worker that loaded it ends. A thread of the notifier
      # may still be inside write(2) then. The worker cannot wait for the thread, because the kernel may
      # let the thread go only after an answer of this very worker.
      "ldflags": ["-Wl,-z,nodelete"],
      "sources": [
        "addon/addon.c",
        "addon/values.c",
        "addon/device.c",
        "addon/fast-path.c",
        "addon/fast-path-calls.c",
        "addon/splicer.c",
        "addon/refusals.c",
        "addon/notifier.c",
        "addon/control.c",
        "addon/calls.c",
        "addon/attributes.c",
        "addon/copy.c"
      ]
    },
    {
      "target_name": "wsfs-supervisor",
      "type": "executable",
      "sources": [
        "supervisor/supervisor.c",
        "supervisor/starter.c",
        "supervisor/successor.c",
        "supervisor/reload.c",
        "supervisor/adopt.c",
        "supervisor/options.c",
        "supervisor/process.c",
        "supervisor/mount.c",
        "supervisor/fusermount.c",
        "supervisor/mount-table.c",
        "supervisor/mount-id.c",
        "supervisor/unmount.c"
      ]
    },
    {
      # Loaded by the SQLite of better-sqlite3, against whose headers it is compiled.
      "target_name": "wsfs-commit-log",
      "type": "shared_library",
      "include_dirs": ["<!(node -p \"require('path').join(require.resolve('better-sqlite3'), '../../deps/sqlite3')\")"],
      "sources": ["commit-log/commit-log.c"]
    },
    {
      "target_name": "wsfs-replayer",
      "type": "executable",
      "sources": ["replayer/replayer.c"]
    }
  ]
}

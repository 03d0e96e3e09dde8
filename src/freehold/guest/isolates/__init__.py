"""Isolates: snippets of code, each in a process that is forked from a warm interpreter and sealed before it runs them.

Two kinds of modules are here. `service`, `zygote`, `isolate`, `execution`, `context`, `folder` and `module_store` run in
the guest, which loads them at the first request. The others run in the zygotes and their children: one zygote for each
language, which forks an isolate whenever the guest sends it three descriptors.

guest → zygote    a packet on descriptor 0 with three descriptors: the isolate's channel, its stdout, its stderr. After its
                  first byte: the limits (JSON) with which the isolate seals itself while it is parked, or nothing
zygote → guest    `STATUS`: pid, -1 for a birth or the wait status, microseconds of processor time, bytes at the peak
guest → isolate   on the channel: length (u32) and a JSON request, then a WASM module or the descriptor of a compiled one
                  (with the first byte), then the contents of its input files
isolate → guest   on the channel: records. Each is a kind (u8), a length (u32) and a payload

The guest sends the records on to the host, with those of stdout and stderr between them.
"""

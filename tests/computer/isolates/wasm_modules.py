"""Modules of WebAssembly for the tests, as text."""

WASI = "wasi_snapshot_preview1"

HELLO = f"""
(module
  (import "{WASI}" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "{WASI}" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "out\\nerr\\n")
  (func $say (param $to i32) (param $from i32)
    (i32.store (i32.const 0) (local.get $from))
    (i32.store (i32.const 4) (i32.const 4))
    (drop (call $write (local.get $to) (i32.const 0) (i32.const 1) (i32.const 8))))
  (func (export "_start")
    (call $say (i32.const 1) (i32.const 16))
    (call $say (i32.const 2) (i32.const 20))
    (call $exit (i32.const 3))))
"""

COUNTER = """
(module
  (global $n (mut i32) (i32.const 0))
  (memory (export "memory") 1)
  (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
  (func (export "next") (result i32) (global.set $n (i32.add (global.get $n) (i32.const 1))) (global.get $n))
  (func (export "pair") (result i64 f64) (i64.const 9007199254740993) (f64.const 0.5))
  (func (export "nan") (result f64) (f64.div (f64.const 0) (f64.const 0)))
  (func (export "trap") (unreachable))
  (func (export "loop") (loop $again (br $again)))
  (func $deep (export "deep") (call $deep))
  (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
  (func (export "hoard") (result i32)
    (local $pages i32)
    (loop $again
      (br_if $again (i32.ne (memory.grow (i32.const 16)) (i32.const -1))))
    (memory.fill (i32.const 0) (i32.const 1) (i32.mul (memory.size) (i32.const 65536)))
    (memory.size)))
"""


def file_module(path: str, *, write: bool) -> str:
    """Opens `path` in the first granted folder; the exit code is WASI's error number, 0 for success."""
    flags, rights = (1, 64) if write else (0, 2)
    return f"""
(module
  (import "{WASI}" "path_open"
    (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "{WASI}" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 64) "{path}")
  (func (export "_start")
    (call $exit (call $open (i32.const 3) (i32.const 0) (i32.const 64) (i32.const {len(path)}) (i32.const {flags})
      (i64.const {rights}) (i64.const 0) (i32.const 0) (i32.const 32)))))
"""


RANDOM = f"""
(module
  (import "{WASI}" "random_get" (func $random (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "draw") (result i64) (drop (call $random (i32.const 0) (i32.const 8))) (i64.load (i32.const 0))))
"""

FLOOD = HELLO.replace(
    "(call $exit (i32.const 3))", "(loop $again (call $say (i32.const 1) (i32.const 16)) (br $again))"
)

ARGUMENTS = f"""
(module
  (import "{WASI}" "args_sizes_get" (func $sizes (param i32 i32) (result i32)))
  (import "{WASI}" "environ_sizes_get" (func $variables (param i32 i32) (result i32)))
  (import "{WASI}" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (func (export "_start")
    (drop (call $sizes (i32.const 0) (i32.const 4)))
    (drop (call $variables (i32.const 8) (i32.const 12)))
    (call $exit (i32.add (i32.load (i32.const 0)) (i32.mul (i32.const 10) (i32.load (i32.const 8)))))))
"""

TOO_MANY_IMPORTS = '(module (import "env" "system" (func (param i32))) (func (export "_start")))'

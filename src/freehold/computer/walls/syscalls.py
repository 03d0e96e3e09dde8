"""The system calls that programs inside may use. It is a list of allowed calls, so calls of later kernels are forbidden.

A call on neither list fails with ENOSYS, as on an older kernel, and programs use their fallback. A call on the refused
list fails with EPERM. clone3 is on neither: a filter cannot read its flags, and after ENOSYS the C library uses clone,
whose flags the filter can read.
"""

_ALLOWED = """
accept accept4 access alarm arch_prctl bind brk cachestat capget capset chdir chmod chown clock_getres clock_gettime
clock_nanosleep clone close close_range connect copy_file_range creat dup dup2 dup3 epoll_create epoll_create1 epoll_ctl
epoll_pwait epoll_pwait2 epoll_wait eventfd eventfd2 execve execveat exit exit_group faccessat faccessat2 fadvise64
fallocate fchdir fchmod fchmodat fchmodat2 fchown fchownat fcntl fdatasync fgetxattr flistxattr flock fork fremovexattr
fsetxattr fstat fstatfs fsync ftruncate futex futex_requeue futex_wait futex_waitv futex_wake futimesat get_robust_list
get_thread_area getcpu getcwd getdents getdents64 getegid geteuid getgid getgroups getitimer getpeername getpgid
getpgrp getpid getppid getpriority getrandom getresgid getresuid getrlimit getrusage getsid getsockname getsockopt
gettid gettimeofday getuid getxattr inotify_add_watch inotify_init inotify_init1 inotify_rm_watch ioctl io_cancel io_destroy
io_getevents io_pgetevents io_setup io_submit ioprio_get ioprio_set kill landlock_add_rule landlock_create_ruleset
landlock_restrict_self lchown lgetxattr link linkat listen listxattr llistxattr lremovexattr lseek lsetxattr
lstat madvise map_shadow_stack membarrier memfd_create mincore mkdir mkdirat mlock mlock2 mlockall mknod mknodat mmap
mprotect mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink mremap mseal msgctl msgget msgrcv
msgsnd msync munlock munlockall munmap nanosleep newfstatat open openat openat2 pause pidfd_open pidfd_send_signal
pipe pipe2 pkey_alloc pkey_free pkey_mprotect poll ppoll prctl pread64 preadv preadv2 prlimit64 process_mrelease
ptrace pselect6 pwrite64 pwritev pwritev2 read readahead readlink readlinkat readv recvfrom recvmmsg recvmsg
remap_file_pages removexattr rename renameat renameat2 restart_syscall rmdir rseq rt_sigaction rt_sigpending
rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo sched_get_priority_max
sched_get_priority_min sched_getaffinity sched_getattr sched_getparam sched_getscheduler sched_rr_get_interval
sched_setaffinity sched_setattr sched_setparam sched_setscheduler sched_yield seccomp select semctl semget semop
semtimedop sendfile sendmmsg sendmsg sendto set_robust_list set_thread_area set_tid_address setfsgid setfsuid setgid
setgroups setitimer setpgid setpriority setregid setresgid setresuid setreuid setrlimit setsid setsockopt setuid
setxattr shmat shmctl shmdt shmget shutdown sigaltstack signalfd signalfd4 socket socketpair splice stat statfs
statx symlink symlinkat sync sync_file_range syncfs sysinfo tee tgkill time timer_create timer_delete timer_getoverrun
timer_gettime timer_settime timerfd_create timerfd_gettime timerfd_settime times tkill truncate umask uname unlink
unlinkat utime utimensat utimes vfork vmsplice wait4 waitid write writev
"""

_REFUSED = """
mount umount umount2 pivot_root move_mount open_tree fsopen fsmount fsconfig fspick mount_setattr chroot
setns unshare
add_key request_key keyctl
bpf perf_event_open userfaultfd
io_uring_setup io_uring_enter io_uring_register
process_vm_readv process_vm_writev process_madvise pidfd_getfd kcmp
kexec_load kexec_file_load init_module finit_module delete_module create_module query_module get_kernel_syms
open_by_handle_at name_to_handle_at fanotify_init fanotify_mark lookup_dcookie
acct quotactl quotactl_fd swapon swapoff reboot syslog nfsservctl uselib ustat sysfs vhangup
settimeofday stime clock_settime clock_adjtime adjtimex
sethostname setdomainname iopl ioperm modify_ldt vm86 vm86old
mbind set_mempolicy get_mempolicy migrate_pages move_pages set_mempolicy_home_node
"""

ALLOWED = tuple(_ALLOWED.split())
REFUSED = tuple(_REFUSED.split())

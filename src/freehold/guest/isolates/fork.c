// The few calls that a Node zygote needs and Node does not offer. Only N-API, so that one build serves every Node.
// Built by tools/build-addon.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct environment *napi_env;
typedef struct value *napi_value;
typedef struct arguments *napi_info;
typedef int napi_status;
typedef napi_value (*callback)(napi_env, napi_info);
extern napi_status napi_create_function(napi_env, const char *, size_t, callback, void *, napi_value *);
extern napi_status napi_set_named_property(napi_env, napi_value, const char *, napi_value);
extern napi_status napi_get_cb_info(napi_env, napi_info, size_t *, napi_value *, napi_value *, void **);
extern napi_status napi_create_object(napi_env, napi_value *);
extern napi_status napi_create_array(napi_env, napi_value *);
extern napi_status napi_create_int64(napi_env, int64_t, napi_value *);
extern napi_status napi_get_value_int64(napi_env, napi_value, int64_t *);
extern napi_status napi_get_buffer_info(napi_env, napi_value, void **, size_t *);
extern napi_status napi_is_buffer(napi_env, napi_value, bool *);
extern napi_status napi_set_element(napi_env, napi_value, uint32_t, napi_value);
extern int uv_loop_fork(void *);
extern void *uv_default_loop(void);

enum { CONTROL = 0, BORN = -1, REFUSED = 70, MAX_DESCRIPTORS = 8, MAX_PIPES = 256 };

// The same as STATUS in records.py.
struct report {
  int32_t pid, status;
  int64_t processor, memory;
};

static napi_value number(napi_env env, int64_t value) {
  napi_value result;
  napi_create_int64(env, value, &result);
  return result;
}

static void tell(int pid, int status, const struct rusage *usage) {
  struct report report = {pid, status, 0, 0};
  if (usage) {
    report.processor = (usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000000LL + usage->ru_utime.tv_usec + usage->ru_stime.tv_usec;
    report.memory = usage->ru_maxrss * 1024;
  }
  send(CONTROL, &report, sizeof report, MSG_NOSIGNAL);
}

// Node's V8 marks its heap MADV_DONTFORK, so a child would not have it. This takes the mark back, before each fork.
static void keep_heap(void) {
  static char maps[1 << 20];
  ssize_t size = 0, got;
  int descriptor = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return;
  while (size < (ssize_t)sizeof maps - 1 && (got = read(descriptor, maps + size, sizeof maps - 1 - size)) > 0) size += got;
  close(descriptor);
  maps[size] = 0;
  for (char *line = maps; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
    char *end;
    unsigned long from = strtoul(line, &end, 16), to = strtoul(end + 1, &end, 16);
    if (end[4] == 'p') madvise((void *)from, to - from, MADV_DOFORK);
  }
}

// The numbers of this process's descriptors above 2, one after the other; -1 after the last.
static int next_descriptor(DIR *folder) {
  struct dirent *entry;
  while ((entry = readdir(folder))) {
    int descriptor = atoi(entry->d_name);
    if (descriptor > 2 && descriptor != dirfd(folder)) return descriptor;
  }
  return -1;
}

// The pipes of the zygote, which each child inherits: those that it has besides are its own.
static struct {
  ino_t found[MAX_PIPES];
  size_t count;
} pipes;

static bool note_pipes(void) {
  struct stat about;
  DIR *folder = opendir("/proc/self/fd");
  if (!folder) return false;
  pipes.count = 0;
  for (int descriptor; (descriptor = next_descriptor(folder)) >= 0;)
    if (fstat(descriptor, &about) == 0 && S_ISFIFO(about.st_mode)) {
      if (pipes.count == MAX_PIPES) {
        closedir(folder);
        errno = EMFILE;
        return false;
      }
      pipes.found[pipes.count++] = about.st_ino;
    }
  closedir(folder);
  return true;
}

static bool is_new_pipe(const struct stat *about) {
  if (!S_ISFIFO(about->st_mode)) return false;
  for (size_t at = 0; at < pipes.count; at++)
    if (pipes.found[at] == about->st_ino) return false;
  return true;
}

// In the child, which is one thread: of the zygote's descriptors only `kept` stay. Through any other, such as the pipes
// and events of libuv's loops, it could speak to the zygote's threads and to its siblings. Their numbers stay taken, because
// libuv remembers them: what can be waited for and read has ended, and the rest leads nowhere. A pipe that libuv made
// anew for the child stays too: see uv__signal_global_reinit.
static bool leave_descriptors(const int *kept, size_t count) {
  int ended[2], nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nowhere < 0 || pipe2(ended, O_CLOEXEC | O_NONBLOCK)) return false;
  close(ended[1]);
  DIR *folder = opendir("/proc/self/fd");
  if (!folder) return false;
  for (int descriptor; (descriptor = next_descriptor(folder)) >= 0;) {
    bool stays = descriptor == nowhere || descriptor == ended[0];
    for (size_t at = 0; at < count; at++) stays = stays || kept[at] == descriptor;
    struct stat about;
    if (stays) continue;
    if (fstat(descriptor, &about)) return false;
    if (is_new_pipe(&about)) continue;
    int mode = fcntl(descriptor, F_GETFL);
    bool awaited = S_ISSOCK(about.st_mode) || (S_ISFIFO(about.st_mode) && (mode & O_ACCMODE) == O_RDONLY);
    if (dup3(awaited ? ended[0] : nowhere, descriptor, O_CLOEXEC) < 0) return false;
  }
  closedir(folder);
  close(ended[0]);
  close(nowhere);
  return true;
}

// syscall(number, ...) -> its result or -errno. Arguments are numbers, or buffers for pointers.
static napi_value do_syscall(napi_env env, napi_info info) {
  size_t count = 7;
  napi_value given[7];
  long words[7] = {0};
  napi_get_cb_info(env, info, &count, given, NULL, NULL);
  for (size_t at = 0; at < count && at < 7; at++) {
    bool is_buffer = false;
    napi_is_buffer(env, given[at], &is_buffer);
    if (is_buffer) {
      void *start;
      size_t size;
      napi_get_buffer_info(env, given[at], &start, &size);
      words[at] = (long)start;
    } else {
      int64_t value = 0;
      napi_get_value_int64(env, given[at], &value);
      words[at] = (long)value;
    }
  }
  long result = syscall(words[0], words[1], words[2], words[3], words[4], words[5], words[6]);
  return number(env, result < 0 ? -errno : result);
}

// move(from, to): a copy of a descriptor at another number; closed by exec only for the channel, which is above 2.
static napi_value do_move(napi_env env, napi_info info) {
  size_t count = 2;
  napi_value given[2];
  int64_t from = -1, to = -1;
  napi_get_cb_info(env, info, &count, given, NULL, NULL);
  napi_get_value_int64(env, given[0], &from);
  napi_get_value_int64(env, given[1], &to);
  int result = from == to ? (int)to : dup3((int)from, (int)to, to > 2 ? O_CLOEXEC : 0);
  return number(env, result < 0 ? -errno : result);
}

// seal(program): no new privileges, then the system-call filter.
static napi_value do_seal(napi_env env, napi_info info) {
  size_t count = 1, size = 0;
  napi_value given[1];
  void *start = NULL;
  napi_get_cb_info(env, info, &count, given, NULL, NULL);
  napi_get_buffer_info(env, given[0], &start, &size);
  struct {
    unsigned short length;
    void *filter;
  } program = {(unsigned short)(size / 8), start};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, 2, &program, 0, 0)) return number(env, -errno);
  return number(env, 0);
}

static void wake_only(int signal_number) { (void)signal_number; }

// Waits for a packet and reaps dead isolates meanwhile. SIGCHLD is let in only while it waits.
static void wait_for_packet(void) {
  static bool prepared;
  sigset_t blocked, former;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGCHLD);
  sigprocmask(SIG_BLOCK, &blocked, &former);
  sigdelset(&former, SIGCHLD);
  if (!prepared) {
    struct sigaction action = {.sa_handler = wake_only, .sa_flags = SA_NOCLDSTOP};
    sigaction(SIGCHLD, &action, NULL);
    prepared = true;
  }
  for (;;) {
    int status;
    struct rusage usage;
    pid_t pid;
    while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0) tell(pid, status, &usage);
    struct pollfd ready = {CONTROL, POLLIN, 0};
    if (ppoll(&ready, 1, NULL, &former) > 0) return;
  }
}

// The descriptors of the next packet. 0 when the guest has closed the socket.
static size_t receive(int *descriptors) {
  char data[64], control[CMSG_SPACE(sizeof(int) * MAX_DESCRIPTORS)];
  struct iovec part = {data, sizeof data};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  size_t count = 0;
  wait_for_packet();
  ssize_t got;
  do got = recvmsg(CONTROL, &message, MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  if (got <= 0) return 0;
  for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header))
    if (header->cmsg_type == SCM_RIGHTS)
      for (size_t each = 0; each < (header->cmsg_len - CMSG_LEN(0)) / sizeof(int); each++)
        memcpy(&descriptors[count++], CMSG_DATA(header) + each * sizeof(int), sizeof *descriptors);
  return count;
}

// serve(kept) -> in each child its descriptors: besides `kept` it has no other of the zygote. None when the guest has closed
// the socket. No JavaScript runs in the zygote meanwhile, so that its memory is the same for every child.
static napi_value do_serve(napi_env env, napi_info info) {
  size_t arguments = 1, count;
  napi_value given[1], result;
  int64_t shared = -1;
  int descriptors[MAX_DESCRIPTORS + 1];
  napi_get_cb_info(env, info, &arguments, given, NULL, NULL);
  napi_get_value_int64(env, given[0], &shared);
  napi_create_array(env, &result);
  keep_heap();
  bool noted = note_pipes();
  while ((count = receive(descriptors))) {
    pid_t pid = noted ? fork() : -1;
    if (pid == 0) {
      sigset_t none;
      sigemptyset(&none);
      sigprocmask(SIG_SETMASK, &none, NULL);
      signal(SIGCHLD, SIG_DFL);
      descriptors[count] = (int)shared;
      if (!leave_descriptors(descriptors, count + 1) || uv_loop_fork(uv_default_loop())) _exit(REFUSED);
      for (uint32_t at = 0; at < count; at++) napi_set_element(env, result, at, number(env, descriptors[at]));
      return result;
    }
    tell(pid < 0 ? 0 : pid, pid < 0 ? errno : BORN, NULL);
    for (size_t at = 0; at < count; at++) close(descriptors[at]);
  }
  return result;
}

napi_value napi_register_module_v1(napi_env env, napi_value exports) {
  const struct { const char *name; callback function; } functions[] = {
    {"syscall", do_syscall}, {"move", do_move}, {"seal", do_seal}, {"serve", do_serve},
  };
  const struct { const char *name; long value; } numbers[] = {
    {"exit_group", SYS_exit_group}, {"getpid", SYS_getpid}, {"close", SYS_close}, {"setrlimit", SYS_setrlimit}, {"ppoll", SYS_ppoll},
    {"getrandom", SYS_getrandom},
    {"landlock_create_ruleset", 444}, {"landlock_add_rule", 445}, {"landlock_restrict_self", 446},
  };
  napi_value value, names;
  for (size_t at = 0; at < sizeof functions / sizeof *functions; at++) {
    napi_create_function(env, functions[at].name, strlen(functions[at].name), functions[at].function, NULL, &value);
    napi_set_named_property(env, exports, functions[at].name, value);
  }
  napi_create_object(env, &names);
  for (size_t at = 0; at < sizeof numbers / sizeof *numbers; at++)
    napi_set_named_property(env, names, numbers[at].name, number(env, numbers[at].value));
  napi_set_named_property(env, exports, "numbers", names);
  return exports;
}

int32_t node_api_module_get_api_version_v1(void) { return 8; }

// Makes the n-th system call on the files of a folder fail.
//
// The library is preloaded into the program under test. A seccomp filter traps the calls below, so
// that it also sees those of SQLite and those that bypass libc. The handler of the trap counts
// them, and runs or fails them.
//
// FAULT_FOLDER  the folder; a relative path is in it
// FAULT_CALLS   the calls to count: "read", "write" (all that change files) or "stdout"
// FAULT_AT      the number of the call that fails, from 1
// FAULT_HOW     "error" (EIO), "full" (ENOSPC, from then on), "closed" (EPIPE, from then on),
//               "short" (half of the bytes, from then on) or "kill" (half of the bytes, then
//               SIGKILL)
// FAULT_LOG     a file that is created when the call fails; it holds the call and its path
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

// None of the calls has six arguments; this one marks those of the handler.
#define MARK 0x54595245

enum { READ = 1, CHANGE = 2, BYTES = 4, PATH = 8, AT = 16, SAME = 32 };

static const struct { int number, kind; const char *name; } calls[] = {
    {SYS_read, READ | BYTES, "read"},
    {SYS_pread64, READ | BYTES, "pread"},
    {SYS_write, CHANGE | BYTES, "write"},
    {SYS_pwrite64, CHANGE | BYTES, "pwrite"},
    {SYS_writev, CHANGE, "writev"},
    {SYS_ftruncate, CHANGE, "ftruncate"},
    {SYS_fallocate, CHANGE, "fallocate"},
    {SYS_fsync, CHANGE | SAME, "fsync"},
    {SYS_fdatasync, CHANGE | SAME, "fdatasync"},
    {SYS_fchmod, CHANGE | SAME, "chmod"},
    {SYS_open, PATH, "open"},
    {SYS_openat, PATH | AT, "open"},
    {SYS_mkdir, CHANGE | PATH, "mkdir"},
    {SYS_rename, CHANGE | PATH, "rename"},
    {SYS_renameat, CHANGE | PATH | AT, "rename"},
    {SYS_renameat2, CHANGE | PATH | AT, "rename"},
    {SYS_link, CHANGE | PATH, "link"},
    {SYS_linkat, CHANGE | PATH | AT, "link"},
    {SYS_unlink, CHANGE | PATH, "unlink"},
    {SYS_unlinkat, CHANGE | PATH | AT, "unlink"},
};
enum { CALLS = sizeof calls / sizeof *calls };

static const char *folder, *counted, *how, *log_path;
static long fail_at, count;

static long run(long number, const long *a, long bytes) {
    long got = syscall(number, a[0], a[1], bytes, a[3], a[4], MARK);
    return got < 0 ? -errno : got;
}

// The path of a call, and its class: "read", "write" or "stdout"; null if it is none of ours.
static const char *classify(int kind, const long *a, char *path, size_t size) {
    if (!(kind & PATH)) {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%ld", a[0]);
        long length = readlink(link, path, size - 1);
        path[length < 0 ? 0 : length] = 0;
        if (a[0] == 1 && kind & CHANGE) return "stdout";
        if (strncmp(path, folder, strlen(folder))) return NULL;
    } else {
        const char *name = (const char *)a[kind & AT ? 1 : 0];
        snprintf(path, size, "%s", name);
        if (*name == '/' && strncmp(name, folder, strlen(folder))) return NULL;
    }
    if (kind & CHANGE) return "write";
    if (kind & READ) return "read";
    return a[kind & AT ? 2 : 1] & (O_CREAT | O_WRONLY | O_RDWR) ? "write" : "read";
}

// Whether a call leaves the files as they are: a kill, or a full disk, makes no difference to it.
static int leaves_files(int kind, const long *a) {
    int is_open = kind & PATH && !(kind & CHANGE);
    return kind & SAME || (is_open && !(a[kind & AT ? 2 : 1] & O_CREAT));
}

static long answer(int index, const long *a) {
    char path[4096];
    int number = calls[index].number, kind = calls[index].kind;
    const char *class = classify(kind, a, path, sizeof path);
    long half = kind & BYTES && a[2] > 1 ? a[2] / 2 : 0;
    int is_short = !strcmp(how, "short"), is_full = !strcmp(how, "full");
    int is_kill = !strcmp(how, "kill");
    if (!class || strcmp(class, counted) || (is_short && !half) ||
        ((is_full || is_kill) && leaves_files(kind, a)))
        return run(number, a, a[2]);
    long n = __atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST);
    int lasts = is_short || is_full || !strcmp(how, "closed");
    int fails = n == fail_at || (lasts && n > fail_at);
    // A file can be removed from a full disk.
    if (is_full && (number == SYS_unlink || number == SYS_unlinkat)) fails = 0;
    if (!fails) return run(number, a, a[2]);
    int log = syscall(SYS_open, log_path, O_CREAT | O_WRONLY | O_APPEND, 0600, 0, 0, MARK);
    char line[4200];
    int length = snprintf(line, sizeof line, "%s %s\n", calls[index].name, path);
    syscall(SYS_write, log, line, (long)length, 0, 0, MARK);
    close(log);
    if (is_short) return run(number, a, half);
    if (is_kill) {
        if (half) run(number, a, half);
        kill(getpid(), SIGKILL);
    }
    return is_full ? -ENOSPC : !strcmp(how, "closed") ? -EPIPE : -EIO;
}

static void trapped(int signal, siginfo_t *info, void *context) {
    (void)signal;
    int saved = errno;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    const long arguments[5] = {registers[REG_RDI], registers[REG_RSI], registers[REG_RDX],
                               registers[REG_R10], registers[REG_R8]};
    for (int i = 0; i < CALLS; i++)
        if (calls[i].number == info->si_syscall) registers[REG_RAX] = answer(i, arguments);
    errno = saved;
}

__attribute__((constructor)) static void start(void) {
    folder = getenv("FAULT_FOLDER");
    counted = getenv("FAULT_CALLS");
    how = getenv("FAULT_HOW");
    log_path = getenv("FAULT_LOG");
    const char *at = getenv("FAULT_AT");
    if (!folder || !counted || !how || !log_path || !at) return;
    fail_at = atol(at);
    struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO | SA_NODEFER};
    struct sock_filter filter[CALLS + 5];
    int i = 0;
    filter[i++] = (struct sock_filter)BPF_STMT(
        BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[5]));
    filter[i++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MARK, CALLS + 1, 0);
    filter[i++] = (struct sock_filter)BPF_STMT(
        BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int call = 0; call < CALLS; call++)
        filter[i++] = (struct sock_filter)BPF_JUMP(
            BPF_JMP | BPF_JEQ | BPF_K, calls[call].number, CALLS - call, 0);
    filter[i++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter[i++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
    struct sock_fprog program = {.len = i, .filter = filter};
    if (sigaction(SIGSYS, &action, NULL) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
        perror("cannot trap system calls");
        _exit(99);
    }
}

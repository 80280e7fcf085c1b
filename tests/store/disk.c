/* A disk that fails when it is told to, and one that remembers: laid over the system calls of a process with LD_PRELOAD.

   Every write, sync, truncation, rename and removal below one folder is a step, whoever makes it, SQLite included. The
   step that was chosen fails, is done by half, or is the last thing that the process does. With a record, every step
   that was done is written down with its bytes, so that a loss of power can be acted out afterwards. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum fault { NONE, BROKEN, FULL, SHORT, TORN, KILLED, KILLED_AFTER, KILLED_TORN };

static char folder[PATH_MAX];
static long chosen, taken;
static int what, lasts, trace = -1;
static pthread_mutex_t pen = PTHREAD_MUTEX_INITIALIZER;

void disk_arm(const char *where, long step, int fault, int is_lasting) {
    strncpy(folder, where, sizeof folder - 1);
    taken = 0, chosen = step, what = fault, lasts = is_lasting;
}

long disk_steps(void) { return taken; }

void disk_record(const char *where, const char *path) {
    trace = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    disk_arm(where, 0, NONE, 0);
}

/* A line with what was done and to which path; the bytes follow it. */
static void record(char kind, const char *path, long long place, const void *bytes, size_t size) {
    static ssize_t (*real)(int, const void *, size_t);
    char line[2 * PATH_MAX + 64];
    if (trace < 0) return;
    if (!real) real = dlsym(RTLD_NEXT, "write");
    int length = snprintf(line, sizeof line, "%c %lld %zu %s\n", kind, place, size, path);
    pthread_mutex_lock(&pen);
    if (real(trace, line, length) != length || (size && real(trace, bytes, size) != (ssize_t)size)) _exit(99);
    pthread_mutex_unlock(&pen);
}

void disk_note(const char *text) { record('N', text, 0, NULL, 0); }

static int is_below(const char *path) { return *folder && strncmp(path, folder, strlen(folder)) == 0; }

static int is_ours(int descriptor, char *path) {
    char link[64];
    if (!*folder) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return is_below(path);
}

static enum fault step(void) {
    long number = __sync_add_and_fetch(&taken, 1);
    return number == chosen || (lasts && number > chosen) ? what : NONE;
}

static int failed(enum fault fault) {
    if (fault == KILLED || fault == KILLED_TORN) kill(getpid(), SIGKILL), pause();
    if (fault == BROKEN || fault == TORN) return errno = EIO, 1;
    if (fault == FULL) return errno = ENOSPC, 1;
    return 0;
}

/* A call that is done or not: PARAMETERS as they are declared, ARGUMENTS as they are handed on. */
#define WHOLE(NAME, OURS, KIND, PLACE, SECOND, PARAMETERS, ARGUMENTS)                     \
    int NAME PARAMETERS {                                                                 \
        static int(*real) PARAMETERS;                                                     \
        char file[PATH_MAX] = "";                                                         \
        if (!real) real = dlsym(RTLD_NEXT, #NAME);                                        \
        if (!(OURS)) return real ARGUMENTS;                                               \
        enum fault fault = step();                                                        \
        if (failed(fault)) return -1;                                                     \
        int result = real ARGUMENTS;                                                      \
        if (fault == KILLED_AFTER) failed(KILLED);                                        \
        const char *second = SECOND;                                                      \
        if (!result) record(KIND, file, PLACE, second, second ? strlen(second) : 0);      \
        return result;                                                                    \
    }

/* A call that can be done by half. */
#define PARTIAL(NAME, PLACE, PARAMETERS, ARGUMENTS)                                       \
    ssize_t NAME PARAMETERS {                                                             \
        static ssize_t(*real) PARAMETERS;                                                 \
        char file[PATH_MAX] = "";                                                         \
        if (!real) real = dlsym(RTLD_NEXT, #NAME);                                        \
        if (!is_ours(descriptor, file)) return real ARGUMENTS;                            \
        enum fault fault = step();                                                        \
        long long start = PLACE;                                                          \
        int is_half = size > 1 && (fault == SHORT || fault == TORN || fault == KILLED_TORN); \
        if (is_half) {                                                                    \
            size /= 2;                                                                    \
            ssize_t result = real ARGUMENTS;                                              \
            return failed(fault) ? -1 : result;                                           \
        }                                                                                 \
        if (failed(fault)) return -1;                                                     \
        ssize_t result = real ARGUMENTS;                                                  \
        if (fault == KILLED_AFTER) failed(KILLED);                                        \
        if (result > 0) record('W', file, start, bytes, result);                          \
        return result;                                                                    \
    }

#define FILE_CALL is_ours(descriptor, file)
#define NAME_CALL(PATH) (is_below(PATH) && strncpy(file, PATH, sizeof file - 1))

PARTIAL(write, lseek(descriptor, 0, SEEK_CUR), (int descriptor, const void *bytes, size_t size), (descriptor, bytes, size))
PARTIAL(pwrite, place, (int descriptor, const void *bytes, size_t size, off_t place), (descriptor, bytes, size, place))
PARTIAL(pwrite64, place, (int descriptor, const void *bytes, size_t size, off64_t place), (descriptor, bytes, size, place))
WHOLE(fsync, FILE_CALL, 'S', 0, NULL, (int descriptor), (descriptor))
WHOLE(fdatasync, FILE_CALL, 'S', 0, NULL, (int descriptor), (descriptor))
WHOLE(ftruncate, FILE_CALL, 'T', size, NULL, (int descriptor, off_t size), (descriptor, size))
WHOLE(ftruncate64, FILE_CALL, 'T', size, NULL, (int descriptor, off64_t size), (descriptor, size))
WHOLE(rename, NAME_CALL(from), 'R', 0, to, (const char *from, const char *to), (from, to))
WHOLE(link, NAME_CALL(from), 'L', 0, to, (const char *from, const char *to), (from, to))
WHOLE(unlink, NAME_CALL(path), 'U', 0, NULL, (const char *path), (path))

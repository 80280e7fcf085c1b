/* A disk that fails when it is told to: laid over the system calls of a process with LD_PRELOAD.

   Every write, sync, truncation, rename and removal below one folder is a step, whoever makes it, SQLite included. The
   step that was chosen fails, is done by half, or is the last thing that the process does. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum fault { NONE, BROKEN, FULL, SHORT, TORN, KILLED, KILLED_AFTER, KILLED_TORN };

static char folder[PATH_MAX];
static long chosen, taken;
static int what, lasts;

void disk_arm(const char *where, long step, int fault, int is_lasting) {
    strncpy(folder, where, sizeof folder - 1);
    taken = 0, chosen = step, what = fault, lasts = is_lasting;
}

long disk_steps(void) { return taken; }

static int is_below(const char *path) { return *folder && strncmp(path, folder, strlen(folder)) == 0; }

static int is_ours(int descriptor) {
    char link[64], path[PATH_MAX];
    if (!*folder) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
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
#define WHOLE(NAME, OURS, PARAMETERS, ARGUMENTS)                                          \
    int NAME PARAMETERS {                                                                 \
        static int(*real) PARAMETERS;                                                     \
        if (!real) real = dlsym(RTLD_NEXT, #NAME);                                        \
        if (!(OURS)) return real ARGUMENTS;                                               \
        enum fault fault = step();                                                        \
        if (failed(fault)) return -1;                                                     \
        int result = real ARGUMENTS;                                                      \
        if (fault == KILLED_AFTER) failed(KILLED);                                        \
        return result;                                                                    \
    }

/* A call that can be done by half. */
#define PARTIAL(NAME, PARAMETERS, ARGUMENTS)                                              \
    ssize_t NAME PARAMETERS {                                                             \
        static ssize_t(*real) PARAMETERS;                                                 \
        if (!real) real = dlsym(RTLD_NEXT, #NAME);                                        \
        if (!is_ours(descriptor)) return real ARGUMENTS;                                  \
        enum fault fault = step();                                                        \
        int is_half = size > 1 && (fault == SHORT || fault == TORN || fault == KILLED_TORN); \
        if (is_half) {                                                                    \
            size /= 2;                                                                    \
            ssize_t result = real ARGUMENTS;                                              \
            return failed(fault) ? -1 : result;                                           \
        }                                                                                 \
        if (failed(fault)) return -1;                                                     \
        ssize_t result = real ARGUMENTS;                                                  \
        if (fault == KILLED_AFTER) failed(KILLED);                                        \
        return result;                                                                    \
    }

PARTIAL(write, (int descriptor, const void *bytes, size_t size), (descriptor, bytes, size))
PARTIAL(pwrite, (int descriptor, const void *bytes, size_t size, off_t place), (descriptor, bytes, size, place))
PARTIAL(pwrite64, (int descriptor, const void *bytes, size_t size, off64_t place), (descriptor, bytes, size, place))
WHOLE(fsync, is_ours(descriptor), (int descriptor), (descriptor))
WHOLE(fdatasync, is_ours(descriptor), (int descriptor), (descriptor))
WHOLE(ftruncate, is_ours(descriptor), (int descriptor, off_t size), (descriptor, size))
WHOLE(ftruncate64, is_ours(descriptor), (int descriptor, off64_t size), (descriptor, size))
WHOLE(rename, is_below(to), (const char *from, const char *to), (from, to))
WHOLE(link, is_below(to), (const char *from, const char *to), (from, to))
WHOLE(unlink, is_below(path), (const char *path), (path))

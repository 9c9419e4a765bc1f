/*
 * The engine looks at its stop between pieces of work, every few milliseconds as a rule. What does not (a read that hangs)
 * is left alone: its thread ends with the process, at the latest.
 */
#define _GNU_SOURCE
#include "watch.h"

#include <poll.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE = 1000 }; /* milliseconds for the engine to end */

uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* A process that the server started for one client has the connection to it (to its front end, on a data node) as standard
 * input. The server reads there, and hears of the end, but tells no DSI before a transfer begins. */
bool client_is_gone(void)
{
    struct stat facts;
    struct pollfd control = {.fd = STDIN_FILENO, .events = POLLRDHUP};
    if (fstat(STDIN_FILENO, &facts) != 0 || !S_ISSOCK(facts.st_mode))
        return false;
    return poll(&control, 1, 0) > 0 && (control.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

void watch_begin(struct watch *watch, uint32_t seconds, const char *what)
{
    watch->limit = (uint64_t)seconds * 1000;
    watch->what = what;
    watch->stopped = 0;
    watch->failure.reply = 0;
    watch_sign(watch);
}

void watch_sign(struct watch *watch)
{
    atomic_store(&watch->sign, now_ms());
}

uint64_t watch_age(struct watch *watch)
{
    uint64_t sign = atomic_load(&watch->sign), now = now_ms();
    return now > sign ? now - sign : 0;
}

bool watch_is_over(struct watch *watch)
{
    if (watch->failure.reply != 0)
        return true;
    if (client_is_gone())
        failure_set(&watch->failure, 451, "cancelled", "cancelled: the client left");
    else if (watch->limit > 0 && watch_age(watch) > watch->limit)
        failure_set(&watch->failure, 451, "cancelled",
                    "cancelled: %s took more than this server's %u seconds; hint: ask for less, or have it indexed",
                    watch->what, (unsigned)(watch->limit / 1000));
    return watch->failure.reply != 0;
}

bool watch_look(struct watch *watch, const struct engine *engine, const sieva_stop *stop)
{
    if (!watch_is_over(watch))
        return false;
    if (watch->stopped == 0) {
        engine->stop_set(stop);
        watch->stopped = now_ms();
    }
    return now_ms() - watch->stopped > PATIENCE;
}

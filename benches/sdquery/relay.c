/* Joins two TUN devices of two network namespaces by a line that delays each packet.
 *
 * Usage: relay NETNS_A DEVICE_A NETNS_B DEVICE_B DELAY_US QUEUE_BYTES
 *
 * A packet that is read from one device is written to the other DELAY_US later, so that the line adds twice that
 * to a round trip. Each direction has a thread and a queue of its own; packets keep their order. Nothing is lost
 * unless a queue is full: what does not fit is counted and dropped. At SIGTERM or SIGINT the counters are printed
 * as JSON. The line itself has no rate: that is the business of `tc tbf`.
 *
 * The devices hand over TCP segments uncut (IFF_VNET_HDR with offloads), as network cards take them: one read may
 * carry up to 64 KiB, which the receiving stack sees as segments of the MTU.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

/* The longest packet with the header of its offloads, up to the next multiple of 8. */
enum { LONGEST = 65536 + 64, SECOND = 1000000000 };

struct record {
    long long due;
    long length;
};

struct direction {
    int from, to;
    long long delay;
    /* A ring of records, each followed by its packet; `wrap` is where the last one before the turn ends. */
    char *ring;
    size_t size, head, tail, wrap, used;
    unsigned long long packets, bytes, dropped, most_used, refused;
};

static void fail(const char *what)
{
    fprintf(stderr, "relay: %s: %s\n", what, strerror(errno));
    exit(1);
}

static long long now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (long long)at.tv_sec * SECOND + at.tv_nsec;
}

static int open_tun(const char *namespace, const char *device)
{
    char path[256];
    snprintf(path, sizeof path, "/run/netns/%s", namespace);
    int at = open(path, O_RDONLY | O_CLOEXEC);
    if (at < 0 || setns(at, CLONE_NEWNET) != 0)
        fail(path);
    close(at);
    int tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (tun < 0)
        fail("/dev/net/tun");
    struct ifreq request = {0};
    request.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
    strncpy(request.ifr_name, device, IFNAMSIZ - 1);
    if (ioctl(tun, TUNSETIFF, &request) != 0)
        fail(device);
    if (ioctl(tun, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4) != 0)
        fail("offloads of a TUN device");
    return tun;
}

/* Where the next packet may be read to, or NULL when the queue is full. A packet is shorter than LONGEST, so that
 * the head never reaches the tail from behind: where both are equal, the queue is empty. */
static char *room(struct direction *line)
{
    size_t wanted = sizeof(struct record) + LONGEST;
    if (line->used == 0)
        line->head = line->tail = line->wrap = 0;
    if (line->head >= line->tail && line->size - line->head < wanted && line->used > 0) {
        /* The rest of the ring is too short: go on at its start, if that is free. */
        if (line->tail < wanted)
            return NULL;
        line->wrap = line->head;
        line->head = 0;
    }
    if (line->head < line->tail && line->tail - line->head < wanted)
        return NULL;
    return line->ring + line->head + sizeof(struct record);
}

/* Reads what has arrived; a bounded number of packets, so that those that are due do not wait. */
static void take(struct direction *line)
{
    static _Thread_local char lost[LONGEST];
    for (int i = 0; i < 64; i++) {
        char *at = room(line);
        ssize_t got = read(line->from, at ? at : lost, LONGEST);
        if (got <= 0)
            return;
        if (!at) {
            line->dropped++;
            continue;
        }
        struct record *record = (struct record *)(at - sizeof *record);
        record->due = now() + line->delay;
        record->length = got;
        size_t length = (sizeof *record + (size_t)got + 7) & ~(size_t)7;
        line->head += length;
        line->used += length;
        if (line->used > line->most_used)
            line->most_used = line->used;
    }
}

/* Writes the packets that are due; returns when the next one is, or -1 when there is none. */
static long long give(struct direction *line)
{
    while (line->used > 0) {
        if (line->tail == line->wrap && line->head < line->tail)
            line->tail = 0;
        struct record *record = (struct record *)(line->ring + line->tail);
        if (record->due > now())
            return record->due;
        if (write(line->to, record + 1, (size_t)record->length) != record->length)
            line->refused++;
        line->packets++;
        line->bytes += (unsigned long long)record->length;
        size_t length = (sizeof *record + (size_t)record->length + 7) & ~(size_t)7;
        line->tail += length;
        line->used -= length;
    }
    return -1;
}

static void *carry(void *argument)
{
    struct direction *line = argument;
    /* The default slack of timers, 50 us, is as long as the shortest delays. */
    prctl(PR_SET_TIMERSLACK, 1);
    for (;;) {
        long long due = give(line), left = due < 0 ? SECOND : due - now();
        struct timespec wait = {left > 0 ? left / SECOND : 0, left > 0 ? left % SECOND : 0};
        struct pollfd arrives = {.fd = line->from, .events = POLLIN};
        if (ppoll(&arrives, 1, &wait, NULL) > 0)
            take(line);
    }
    return NULL;
}

static void tell(const struct direction *line, const char *name, const char *end)
{
    printf("\"%s\": {\"packets\": %llu, \"bytes\": %llu, \"dropped\": %llu, \"refused\": %llu, \"most_queued\": %llu}%s",
           name, line->packets, line->bytes, line->dropped, line->refused, line->most_used, end);
}

int main(int count, char **words)
{
    if (count != 7) {
        fprintf(stderr, "usage: relay NETNS_A DEVICE_A NETNS_B DEVICE_B DELAY_US QUEUE_BYTES\n");
        return 2;
    }
    int a = open_tun(words[1], words[2]), b = open_tun(words[3], words[4]);
    struct direction lines[2] = {{.from = a, .to = b}, {.from = b, .to = a}};
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        lines[i].delay = (long long)(atof(words[5]) * 1000);
        lines[i].size = (size_t)atoll(words[6]) + LONGEST;
        lines[i].ring = malloc(lines[i].size);
        if (!lines[i].ring || pthread_create(&thread, NULL, carry, &lines[i]) != 0)
            fail("starting a direction");
    }
    printf("ready\n");
    fflush(stdout);
    int which;
    sigwait(&ends, &which);
    printf("{");
    tell(&lines[0], "a_to_b", ", ");
    tell(&lines[1], "b_to_a", "}\n");
    return 0;
}

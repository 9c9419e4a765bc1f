/* Reads a range of a file by two threads into buffers that are used again, and does nothing with it.
 *
 * Usage: pread FILE OFFSET BYTES BUFFER_BYTES
 * Prints the seconds that the reading took: what no scan of those bytes on two threads can beat.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 2 };

struct part {
    int fd;
    long long start, end;
    size_t buffer;
};

static void *read_part(void *argument)
{
    struct part *part = argument;
    char *buffer = aligned_alloc(4096, part->buffer);
    for (long long at = part->start; buffer && at < part->end;) {
        long long left = part->end - at;
        size_t wanted = left < (long long)part->buffer ? (size_t)left : part->buffer;
        ssize_t got = pread(part->fd, buffer, wanted, at);
        if (got <= 0)
            exit(1);
        at += got;
    }
    free(buffer);
    return NULL;
}

int main(int count, char **words)
{
    if (count != 5)
        return 2;
    int fd = open(words[1], O_RDONLY);
    long long offset = atoll(words[2]), bytes = atoll(words[3]);
    if (fd < 0)
        return 1;
    struct timespec before, after;
    pthread_t threads[THREADS];
    struct part parts[THREADS];
    clock_gettime(CLOCK_MONOTONIC, &before);
    for (int i = 0; i < THREADS; i++) {
        parts[i] = (struct part){fd, offset + bytes * i / THREADS, offset + bytes * (i + 1) / THREADS,
                                 (size_t)atoll(words[4])};
        pthread_create(&threads[i], NULL, read_part, &parts[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    clock_gettime(CLOCK_MONOTONIC, &after);
    printf("%.9f\n", (double)(after.tv_sec - before.tv_sec) + 1e-9 * (double)(after.tv_nsec - before.tv_nsec));
    return 0;
}

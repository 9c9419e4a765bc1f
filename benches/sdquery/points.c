/* Reads single values at given places of a file, one read for each: direct access without segments.
 *
 * Usage: points FILE PLACES
 * PLACES holds the offsets as 64-bit integers of this machine. Prints the seconds that the reads took.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int main(int count, char **words)
{
    if (count != 3)
        return 2;
    int file = open(words[1], O_RDONLY), places = open(words[2], O_RDONLY);
    struct stat about;
    if (file < 0 || places < 0 || fstat(places, &about) != 0)
        return 1;
    const int64_t *at = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, places, 0);
    if (at == MAP_FAILED)
        return 1;
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    float value;
    for (off_t i = 0; i < about.st_size / (off_t)sizeof *at; i++)
        if (pread(file, &value, sizeof value, at[i]) != sizeof value)
            return 1;
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%.9f\n", (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec));
    return 0;
}

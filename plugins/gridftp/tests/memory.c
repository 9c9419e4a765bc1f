/*
 * Copies of texts for which there is no memory: a request without its query would be one for the whole file.
 */
#define _GNU_SOURCE
#include "../src/answer.h"
#include "fake.h"

#include <string.h>

static int fails; /* this copy from now on; 0: none */

char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t length);

char *__wrap_strdup(const char *text)
{
    return fails > 0 && --fails == 0 ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t length)
{
    return fails > 0 && --fails == 0 ? NULL : __real_strndup(text, length);
}

int main(void)
{
    int key;
    struct session *session = session_get(&key);
    struct request request;
    for (int i = 1; i <= 2; i++) { /* the query and the path */
        struct failure failure = {0};
        fails = i;
        EXPECT(!request_of_path("/data/a.nc;sql=TEMP%3E5", NULL, &request, &failure) && failure.reply == 451);
        failure.reply = 0;
        fails = i;
        EXPECT(!request_of_text("/data/a.nc", "schema", &request, &failure) && failure.reply == 451);
        EXPECT(strcmp(failure.text, "internal-error: out of memory") == 0);
    }
    struct failure failure = {0};
    EXPECT(request_of_path("/data/a.nc;sql=TEMP%3E5", NULL, &request, &failure));
    EXPECT(strcmp(request.path, "/data/a.nc") == 0 && strcmp(request.sql, "TEMP>5") == 0);
    request_clear(&request);
    fails = 1;
    EXPECT(!session_set_text(session, "TEMP > 5") && session->text == NULL);
    EXPECT(session_set_text(session, "TEMP > 5") && session_set_text(session, NULL));
    session_end(&key);
    puts("ok");
    return 0;
}

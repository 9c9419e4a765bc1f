/*
 * Answers, sessions, jobs and accounts without a server: with the event loop of Globus. For sanitizers:
 * python/tests/gridftp/test_gridftp_sanitized.py builds it with each, and runs it.
 */
#define _GNU_SOURCE
#include "../src/answer.h"
#include "../src/account.h"
#include "../src/job.h"
#include "fake.h"

/* ---- What is asked. ---- */

struct asked {
    bool done;
    int reply;             /* of the failure; 0: none */
    struct answer *answer; /* with a reference */
};

static void take(struct answer *answer, const struct failure *failure, void *argument)
{
    struct asked *asked = argument;
    EXPECT(!asked->done && (answer == NULL) == (failure != NULL));
    *asked = (struct asked){.done = true, .reply = failure == NULL ? 0 : failure->reply, .answer = answer};
}

static void ask(struct session *session, const char *path, const char *sql, struct asked *asked)
{
    static const struct identity who = {"ada", "-"};
    struct request request;
    struct failure failure = {0};
    *asked = (struct asked){0};
    EXPECT(request_of_text(path, sql, &request, &failure));
    answer_get(session, &who, &request, take, asked);
}

static void test_answers(const char *path)
{
    int key;
    struct asked one, two;
    struct session *session = session_get(&key);
    ask(session, path, "slow", &one);
    AWAIT(one.done);
    EXPECT(one.reply == 0 && one.answer->size == SIZE);
    int before = evaluations;
    ask(session, path, "slow", &two); /* the kept one */
    AWAIT(two.done);
    EXPECT(two.answer == one.answer && evaluations == before);
    answer_release(one.answer);
    ask(session, path, "x > 5;format=csv", &one); /* in the place of what another still reads */
    AWAIT(one.done);
    EXPECT(one.reply == 0 && open_results == 2);
    answer_release(two.answer);
    EXPECT(open_results == 1);
    answer_release(one.answer);
    EXPECT(open_results == 1);
    AWAIT(open_results == 0); /* given back, as nobody asks */
    ask(session, path, "wrong", &one);
    AWAIT(one.done);
    EXPECT(one.reply == 501 && one.answer == NULL);
    session_end(&key);
}

/* A session that ends while its question is under way. */
static void test_ends(const char *path)
{
    int key;
    struct asked asked;
    ask(session_get(&key), path, "slow", &asked);
    session_end(&key);
    AWAIT(asked.done);
    EXPECT(asked.reply == 0);
    answer_release(asked.answer);
    AWAIT(open_results == 0 && open_sources == 0);
}

/* Sessions that have ended and are still to be freed, by looks that were to come. */
static void wait_for_looks(void)
{
    uint64_t end = now_ms() + 1500;
    AWAIT(now_ms() > end);
}

static void test_stops(const char *path)
{
    int key;
    struct asked one, two, three;
    struct session *session = session_get(&key);
    ask(session, path, "long", &one); /* ends when it is told */
    AWAIT(one.done);
    EXPECT(one.reply == 451 && job_left_count() == 0);
    ask(session, path, "hang", &one); /* does not */
    AWAIT(one.done);
    EXPECT(one.reply == 451 && job_left_count() == 1);
    ask(session, path, "x > 1", &two);
    AWAIT(two.done);
    EXPECT(two.reply == 450);
    ask(session, path, "x > 1", &three); /* waits */
    atomic_store(&hang, false);
    AWAIT(three.done);
    EXPECT(three.reply == 0 && job_left_count() == 0);
    answer_release(three.answer);
    session_end(&key);
    AWAIT(open_results == 0);
}

int main(int count, char **words)
{
    EXPECT(count == 2);
    EXPECT(globus_module_activate(GLOBUS_COMMON_MODULE) == GLOBUS_SUCCESS);
    account_open();
    for (int i = 0; i < 3; i++)
        test_ends(words[1]);
    test_answers(words[1]);
    test_stops(words[1]);
    wait_for_looks();
    EXPECT(open_sources == 0 && open_results == 0 && open_stops == 0);
    globus_module_deactivate(GLOBUS_COMMON_MODULE);
    puts("ok");
    return 0;
}

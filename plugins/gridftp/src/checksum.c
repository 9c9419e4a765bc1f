/*
 * Checksums, in a thread: all values of the range are read.
 */
#include "checksum.h"

#include "answer.h"
#include "config.h"
#include "job.h"
#include "journal.h"
#include "watch.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

enum { BLOCK = 1 << 20 };

struct checksum {
    globus_gfs_operation_t op;
    struct session *session;
    struct answer *answer;
    const struct engine *engine;
    struct watch watch;
    const EVP_MD *digest; /* NULL: Adler-32 */
    uint64_t offset, length;
    char text[2 * EVP_MAX_MD_SIZE + 1];
    struct entry entry;
    struct failure failure;
};

/* Feeds the range to the digest, or to the Adler-32 sum. False: failure is set. */
static bool feed(struct checksum *checksum, EVP_MD_CTX *context, uLong *adler)
{
    unsigned char *block = malloc(BLOCK);
    uint64_t at = checksum->offset, left = checksum->length;
    bool good = block != NULL;
    if (!good)
        failure_set(&checksum->failure, 451, "internal-error", "internal-error: out of memory");
    while (good && left > 0) {
        uint64_t count = 0;
        good = answer_read(checksum->answer, at, block, left < BLOCK ? left : BLOCK, &count, &checksum->failure);
        if (!good || count == 0)
            break;
        *adler = adler32(*adler, block, (uInt)count);
        if (context != NULL)
            EVP_DigestUpdate(context, block, count);
        at += count;
        left -= count;
        watch_sign(&checksum->watch);
    }
    free(block);
    checksum->entry.bytes = at - checksum->offset;
    return good;
}

/* In a thread of its own. */
static void sum(void *argument)
{
    struct checksum *checksum = argument;
    uLong adler = adler32(0, NULL, 0);
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    EVP_MD_CTX *context = checksum->digest == NULL ? NULL : EVP_MD_CTX_new();
    if (checksum->digest != NULL && (context == NULL || EVP_DigestInit_ex(context, checksum->digest, NULL) != 1)) {
        failure_set(&checksum->failure, 451, "unsupported", "unsupported: this server's OpenSSL does not offer the digest");
    } else if (feed(checksum, context, &adler)) {
        if (context == NULL)
            snprintf(checksum->text, sizeof checksum->text, "%08lx", adler);
        else
            EVP_DigestFinal_ex(context, digest, &length);
        for (unsigned i = 0; i < length; i++)
            snprintf(checksum->text + 2 * i, 3, "%02x", digest[i]);
    }
    EVP_MD_CTX_free(context);
}

static bool watch(void *argument)
{
    struct checksum *checksum = argument;
    return watch_look(&checksum->watch, checksum->engine, checksum->answer->stop);
}

static void finish(void *argument, bool left)
{
    struct checksum *checksum = argument;
    const struct failure *failure =
        left || checksum->watch.failure.reply != 0 ? &checksum->watch.failure : &checksum->failure;
    bool failed = failure->reply != 0;
    if (checksum->watch.failure.reply != 0)
        session_forget(checksum->session, checksum->answer);
    journal_write(&checksum->entry, failed ? failure->text : NULL);
    globus_gridftp_server_finished_command(checksum->op, failed ? failure_result(failure) : GLOBUS_SUCCESS,
                                           failed ? NULL : checksum->text);
}

static void release(void *argument)
{
    struct checksum *checksum = argument;
    journal_clear(&checksum->entry);
    answer_release(checksum->answer);
    session_release(checksum->session);
    free(checksum);
}

static void fail(struct checksum *checksum, const struct failure *failure)
{
    checksum->failure = *failure;
    finish(checksum, false);
    release(checksum);
}

static void begin(struct answer *answer, const struct failure *failure, void *argument)
{
    struct checksum *checksum = argument;
    static const struct task task = {.work = sum, .watch = watch, .done = finish, .release = release};
    struct failure none;
    checksum->answer = answer;
    if (answer == NULL) {
        fail(checksum, failure);
        return;
    }
    checksum->engine = engine_get(&none);
    checksum->entry.rows = answer->rows;
    watch_begin(&checksum->watch, config_get()->progress_limit, "a part of the result");
    if (!job_start(&task, checksum)) {
        failure_set(&none, 451, "internal-error", "internal-error: no thread can be started; hint: try again later");
        fail(checksum, &none);
    }
}

void checksum_tell(globus_gfs_operation_t op, struct session *session, const globus_gfs_command_info_t *info,
                   struct request *request)
{
    struct checksum *checksum = calloc(1, sizeof *checksum);
    if (checksum == NULL) {
        request_clear(request);
        globus_gridftp_server_finished_command(op, GlobusGFSErrorMemory("checksum"), NULL);
        return;
    }
    const char *name = info->cksm_alg == NULL ? "MD5" : info->cksm_alg;
    checksum->op = op;
    checksum->session = session_hold(session);
    checksum->offset = info->cksm_offset < 0 ? 0 : (uint64_t)info->cksm_offset;
    checksum->length = info->cksm_length < 0 ? UINT64_MAX : (uint64_t)info->cksm_length;
    journal_begin(&checksum->entry, "CKSM", request, session, op);
    static const char *const names[] = {"MD5", "SHA1", "SHA256", "SHA512"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcasecmp(name, names[i]) == 0)
            checksum->digest = EVP_get_digestbyname(names[i]);
    if (checksum->digest == NULL && strcasecmp(name, "ADLER32") != 0) {
        struct failure failure;
        failure_set(&failure, 501, "unsupported",
                    "unsupported: no checksum `%.40s`; hint: one of MD5, ADLER32, SHA1, SHA256, SHA512", name);
        request_clear(request);
        fail(checksum, &failure);
        return;
    }
    request->any_order = false;
    answer_get(session, &checksum->entry.identity, request, begin, checksum);
}

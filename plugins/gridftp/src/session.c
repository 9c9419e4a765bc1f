/*
 * Sessions. A server's process serves one client, as a rule, so the list has one entry.
 */
#include "session.h"

#include "answer.h"
#include "config.h"
#include "failure.h"
#include "job.h"

#include <gssapi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct session *sessions;
static char *announced; /* subject of the session that started last */

void session_announce(const globus_gfs_session_info_t *info)
{
    pthread_mutex_lock(&lock);
    free(announced);
    announced = NULL;
    if (info->subject != NULL && *info->subject != '\0' && (announced = strdup(info->subject)) == NULL)
        abort(); /* rather than ask for nobody, who may be allowed more */
    pthread_mutex_unlock(&lock);
}

struct session *session_get(void *key)
{
    pthread_mutex_lock(&lock);
    struct session *session = sessions;
    while (session != NULL && session->key != key)
        session = session->next;
    if (session == NULL) {
        session = calloc(1, sizeof *session);
        if (session == NULL)
            abort();
        session->references = 1;
        pthread_mutex_init(&session->lock, NULL);
        session->key = key;
        session->subject = announced;
        announced = NULL;
        session->next = sessions;
        sessions = session;
    }
    pthread_mutex_unlock(&lock);
    return session;
}

void session_end(void *key)
{
    pthread_mutex_lock(&lock);
    struct session **link = &sessions, *session;
    while (*link != NULL && (*link)->key != key)
        link = &(*link)->next;
    session = *link;
    if (session != NULL)
        *link = session->next;
    pthread_mutex_unlock(&lock);
    if (session == NULL)
        return;
    pthread_mutex_lock(&session->lock);
    session->ended = true;
    pthread_mutex_unlock(&session->lock);
    session_keep(session, NULL);
    session_release(session);
}

struct session *session_hold(struct session *session)
{
    __atomic_add_fetch(&session->references, 1, __ATOMIC_RELAXED);
    return session;
}

void session_release(struct session *session)
{
    if (__atomic_sub_fetch(&session->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    answer_drop(session->kept);
    pthread_mutex_destroy(&session->lock);
    free(session->subject);
    free(session->text);
    free(session);
}

/* Gives back what nobody has asked for in a while, or comes again. */
static void look_at_kept(void *argument)
{
    struct session *session = argument;
    uint64_t keep = (uint64_t)config_get()->keep * 1000, idle = 0;
    struct answer *old = NULL;
    pthread_mutex_lock(&session->lock);
    if (session->kept != NULL) {
        idle = answer_idle_ms(session->kept);
        if (idle >= keep) {
            old = session->kept;
            session->kept = NULL;
        }
    }
    session->timed = session->kept != NULL;
    bool again = session->timed;
    pthread_mutex_unlock(&session->lock);
    answer_drop(old);
    if (again)
        call_later((keep - idle + 1) * 1000, look_at_kept, session);
    else
        session_release(session);
}

void session_keep(struct session *session, struct answer *answer)
{
    pthread_mutex_lock(&session->lock);
    struct answer *old = session->kept;
    session->kept = session->ended || answer == NULL ? NULL : answer_hold(answer);
    if (session->kept != NULL)
        __atomic_store_n(&answer->kept, true, __ATOMIC_RELEASE);
    bool start = session->kept != NULL && !session->timed;
    session->timed |= start;
    pthread_mutex_unlock(&session->lock);
    answer_drop(old);
    if (start)
        call_later(((uint64_t)config_get()->keep * 1000 + 1) * 1000, look_at_kept, session_hold(session));
}

struct answer *session_kept(struct session *session)
{
    pthread_mutex_lock(&session->lock);
    struct answer *answer = session->kept == NULL ? NULL : answer_hold(session->kept);
    pthread_mutex_unlock(&session->lock);
    return answer;
}

void session_forget(struct session *session, const struct answer *answer)
{
    struct answer *old = NULL;
    pthread_mutex_lock(&session->lock);
    if (session->kept == answer) {
        old = session->kept;
        session->kept = NULL;
    }
    pthread_mutex_unlock(&session->lock);
    answer_drop(old);
}

bool session_set_text(struct session *session, const char *text)
{
    bool is_empty = text == NULL || text[strspn(text, " \t")] == '\0';
    free(session->text);
    session->text = is_empty ? NULL : strdup(text);
    return is_empty || session->text != NULL;
}

/* The distinguished name that the client's certificate proved; false where it proved none, or another process checked. */
static bool prove_subject(globus_gfs_operation_t op, char *subject, size_t size)
{
    gss_ctx_id_t context = GSS_C_NO_CONTEXT;
    gss_name_t client = GSS_C_NO_NAME;
    gss_buffer_desc text = GSS_C_EMPTY_BUFFER;
    OM_uint32 minor;
    bool proved = false;
    globus_gridftp_server_get_sec_context(op, &context);
    if (context == GSS_C_NO_CONTEXT || gss_inquire_context(&minor, context, &client, NULL, NULL, NULL, NULL, NULL,
                                                           NULL) != GSS_S_COMPLETE)
        return false;
    if (gss_display_name(&minor, client, &text, NULL) == GSS_S_COMPLETE) {
        snprintf(subject, size, "%.*s", (int)text.length, (const char *)text.value);
        gss_release_buffer(&minor, &text);
        proved = *subject != '\0';
    }
    gss_release_name(&minor, &client);
    return proved;
}

struct identity session_identity(const struct session *session, globus_gfs_operation_t op)
{
    struct identity identity;
    char *user = NULL;
    globus_gridftp_server_get_session_username(op, &user);
    snprintf(identity.user, sizeof identity.user, "%s", user == NULL ? "-" : user);
    if (!prove_subject(op, identity.subject, sizeof identity.subject))
        snprintf(identity.subject, sizeof identity.subject, "%s", session->subject == NULL ? "-" : session->subject);
    globus_free(user);
    one_line(identity.user);
    one_line(identity.subject);
    return identity;
}

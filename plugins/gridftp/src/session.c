/*
 * Sessions. A server's process serves one client, as a rule, so the list has one entry.
 */
#include "session.h"

#include "answer.h"
#include "failure.h"

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
    announced = info->subject == NULL || *info->subject == '\0' ? NULL : strdup(info->subject);
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
    answer_release(session->kept);
    free(session->subject);
    free(session->text);
    free(session);
}

void session_set_text(struct session *session, const char *text)
{
    free(session->text);
    session->text = text == NULL || text[strspn(text, " \t")] == '\0' ? NULL : strdup(text);
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

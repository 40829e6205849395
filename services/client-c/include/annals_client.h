// The client of an Annals realm. Written by cbindgen from services/client-c: do not edit. Docs: docs/c-client.md.
//
// What all functions require of their caller:
// - A pointer to a handle (schema, type, client, value, error) is NULL or one that this library returned and that is
//   still valid. A name, an address or a password is NUL-terminated UTF-8. A place for a result is NULL or aligned and of
//   its type. NULL, text that is not UTF-8 and numbers without meaning give an error, or the answer that is described.
// - A client is used by one thread at a time. A second one gets ANNALS_ERROR_CODE_IN_USE.
//
// What the caller owns: what a function named _new_, _copy, _decode, _from_ or _start returns, and an error, each until
// it is passed to the function named _free. All else is borrowed for as long as its comment says. No function takes
// ownership of an argument, except those named _free.
//
// Errors: `error` may be NULL. If it is not, it receives NULL, or after an error a new one, which the caller frees.


#ifndef ANNALS_CLIENT_H
#define ANNALS_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What an event says, and which fields of it are used beside `kind`. Later versions may have more: ignore unknown ones.
enum annals_event_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // There is no event.
  ANNALS_EVENT_KIND_NONE = 0,
  // A new session has started: `session`; `entity`, `type_id` and `type_name` of the entity that the client controls.
  ANNALS_EVENT_KIND_CONNECTED = 1,
  // The session was resumed after ANNALS_EVENT_KIND_LOST: `number`, the epoch of the base.
  ANNALS_EVENT_KIND_RESUMED = 2,
  // The connection was lost, and the client tries to resume by itself: `reason`, `text`.
  ANNALS_EVENT_KIND_LOST = 3,
  // The account is banned: `text`, the operator's reason; `number`, milliseconds since 1970 until which, or 0.
  // ANNALS_EVENT_KIND_ENDED follows.
  ANNALS_EVENT_KIND_BANNED = 4,
  // The client has ended; there are no more events: `reason`, `text`.
  ANNALS_EVENT_KIND_ENDED = 5,
  // The client controls another entity, or the same one, whose cell part has ended: `entity`, `type_id`, `type_name`.
  ANNALS_EVENT_KIND_CONTROLS = 6,
  // An entity entered a view: `part`, `entity`, `type_id`, `type_name`; `number`, the history number of its state. If
  // that is 0, its properties have their defaults until ANNALS_EVENT_KIND_REFRESHED follows.
  ANNALS_EVENT_KIND_ENTERED = 7,
  // An entity left a view: `part`, `entity`.
  ANNALS_EVENT_KIND_LEFT = 8,
  // Properties of an entity were sent in full: `part`, `entity`, `type_id`, `type_name`; `number`, the history number of
  // the values; `changes`, one for each property that was sent or is another now. `old` is NULL where the value is as
  // before or none was known.
  ANNALS_EVENT_KIND_REFRESHED = 9,
  // A property was changed: `part`, `entity`, `type_id`, `type_name`, `number`; `member`, its name; `changes`, one, in
  // which what was replaced is.
  ANNALS_EVENT_KIND_CHANGED = 10,
  // A client method was called: `part`, `entity`, `type_id`, `type_name`, `number`; `member`, its name; `args`, a list.
  ANNALS_EVENT_KIND_CALLED = 11,
  // The server set the position of an entity: `entity`, `position`, `direction`.
  ANNALS_EVENT_KIND_PLACED = 12,
  // The client's own entity is in this space: `entity`, `space`.
  ANNALS_EVENT_KIND_SPACE_ENTERED = 13,
  // A key in the data of the client's own space has another value or none any more, see annals_client_space_data:
  // `space`, `key`.
  ANNALS_EVENT_KIND_SPACE_DATA_CHANGED = 14,
  // A call was delivered but not run: `part`, `entity`, `number`; `reason`, `text`.
  ANNALS_EVENT_KIND_CALL_REFUSED = 15,
  // Calls may not have been delivered, as the part was destroyed: `part`, `entity`; `numbers`.
  ANNALS_EVENT_KIND_CALLS_LOST = 16,
  // The server warns that the client sends too much.
  ANNALS_EVENT_KIND_RATE_WARNED = 17,
  // More of a download is here, or it begins: `entity`, `number`, which name it; `text`, its description; `received`,
  // `size`, bytes.
  ANNALS_EVENT_KIND_DOWNLOAD_PROGRESSED = 18,
  // A download is here as a whole: `entity`, `number`; `text`, its description; `content`.
  ANNALS_EVENT_KIND_DOWNLOADED = 19,
  // A download has ended without being whole: `entity`, `number`.
  ANNALS_EVENT_KIND_DOWNLOAD_ENDED = 20,
  // The realm is full, and the client waits in a queue: `number`, its position, 1 for the next; `size`, the length of the
  // queue. It comes again.
  ANNALS_EVENT_KIND_QUEUED = 21,
  // A call of the client was answered: `part`, `entity`, `type_id`, `type_name`; `number`, that of the call; `member`, the
  // method's name; `args`, the returned values as a list. If the call failed, `args` is NULL: `reason`; `text`, which of
  // an error of the game is its name, a colon and its text. A second answer to a call is to be ignored.
  ANNALS_EVENT_KIND_ANSWERED = 22,
  // The client moves this entity from now on, or does not move it any more, as the realm has chosen another driver:
  // `entity`; `drives`. At first the client moves its own entity and no other. Another entity that leaves the view is no
  // longer moved by the client.
  ANNALS_EVENT_KIND_DRIVES = 23,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum annals_event_kind annals_event_kind;
#else
typedef uint32_t annals_event_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Why something ended or was refused: LOGIN by the login service, BASE by the base, CLOSED with the connection, CALL by
// the entity that was called, ANSWER by its method. Later versions may have more.
enum annals_reason
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // None is given.
  ANNALS_REASON_NONE = 0,
  // The game has left.
  ANNALS_REASON_LEFT = 1,
  // The account is banned.
  ANNALS_REASON_BANNED = 2,
  // The name or the password is wrong.
  ANNALS_REASON_LOGIN_WRONG_PASSWORD = 100,
  // Too many attempts; wait a minute.
  ANNALS_REASON_LOGIN_THROTTLED = 101,
  // The realm is busy.
  ANNALS_REASON_LOGIN_BUSY = 102,
  // The client speaks another version of the protocol.
  ANNALS_REASON_LOGIN_WRONG_PROTOCOL = 103,
  // The base is being taken over.
  ANNALS_REASON_LOGIN_NOT_HELD = 104,
  // The session is unknown.
  ANNALS_REASON_LOGIN_UNKNOWN_SESSION = 105,
  // The realm is shutting down.
  ANNALS_REASON_LOGIN_SHUTTING_DOWN = 106,
  // No account can have this name.
  ANNALS_REASON_LOGIN_UNFIT_NAME = 107,
  // The account is logged in elsewhere, and the realm admits no second client.
  ANNALS_REASON_LOGIN_LOGGED_IN = 108,
  // The token is invalid or has expired.
  ANNALS_REASON_LOGIN_WRONG_TOKEN = 109,
  // The realm takes other credentials.
  ANNALS_REASON_LOGIN_OTHER_CREDENTIALS = 110,
  // A registration, and the name is taken.
  ANNALS_REASON_LOGIN_NAME_TAKEN = 111,
  // A registration, and the realm takes none.
  ANNALS_REASON_LOGIN_NO_REGISTRATION = 112,
  // There is no account of this name.
  ANNALS_REASON_LOGIN_NO_ACCOUNT = 113,
  // The client speaks another version of the protocol.
  ANNALS_REASON_BASE_WRONG_PROTOCOL = 200,
  // The client has other definitions than the realm.
  ANNALS_REASON_BASE_WRONG_SCHEMA = 201,
  // The session is unknown.
  ANNALS_REASON_BASE_UNKNOWN_SESSION = 202,
  // The base is held by another process.
  ANNALS_REASON_BASE_ELSEWHERE = 203,
  // The base is busy.
  ANNALS_REASON_BASE_BUSY = 204,
  // The account logged in elsewhere.
  ANNALS_REASON_BASE_LOGGED_IN_ELSEWHERE = 205,
  // The connection has served its purpose.
  ANNALS_REASON_CLOSED_FINISHED = 300,
  // The connection was lost.
  ANNALS_REASON_CLOSED_LOST = 301,
  // The session was resumed over another connection.
  ANNALS_REASON_CLOSED_REPLACED = 302,
  // The base is held by another process now.
  ANNALS_REASON_CLOSED_MOVED = 303,
  // The process is shutting down.
  ANNALS_REASON_CLOSED_SHUTTING_DOWN = 304,
  // The session was ended by the realm.
  ANNALS_REASON_CLOSED_ENDED = 305,
  // The client did not read what was sent to it.
  ANNALS_REASON_CLOSED_TOO_SLOW = 306,
  // The client sent too much in too short a time.
  ANNALS_REASON_CLOSED_TOO_FAST = 307,
  // The client sent bytes that are not of the protocol.
  ANNALS_REASON_CLOSED_MALFORMED = 308,
  // The client sent too large a frame.
  ANNALS_REASON_CLOSED_TOO_LARGE = 309,
  // No first frame arrived in time.
  ANNALS_REASON_CLOSED_SILENT = 310,
  // The process has reached its limit of connections.
  ANNALS_REASON_CLOSED_FULL = 311,
  // The account logged in elsewhere.
  ANNALS_REASON_CLOSED_LOGGED_IN_ELSEWHERE = 312,
  // The account was banned.
  ANNALS_REASON_CLOSED_BANNED = 313,
  // The part has no such method: the realm has other definitions.
  ANNALS_REASON_CALL_NO_SUCH_METHOD = 400,
  // This client may not call that method of that entity.
  ANNALS_REASON_CALL_NOT_ALLOWED = 401,
  // The arguments do not fit: the realm has other definitions.
  ANNALS_REASON_CALL_BAD_ARGUMENTS = 402,
  // The client calls the method more often than its definition allows.
  ANNALS_REASON_CALL_TOO_OFTEN = 403,
  // The method does not allow it.
  ANNALS_REASON_ANSWER_NOT_ALLOWED = 500,
  // The receiver failed.
  ANNALS_REASON_ANSWER_INTERNAL = 501,
  // The arguments do not fit.
  ANNALS_REASON_ANSWER_INVALID_ARGS = 502,
  // What the method called did not answer.
  ANNALS_REASON_ANSWER_NO_REPLY = 503,
  // What the method called does not exist.
  ANNALS_REASON_ANSWER_NO_SUCH_ENTITY = 504,
  // What the method called has no cell part.
  ANNALS_REASON_ANSWER_NO_SUCH_CELL_ENTITY = 505,
  // An error of the game.
  ANNALS_REASON_ANSWER_CUSTOM = 506,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum annals_reason annals_reason;
#else
typedef uint32_t annals_reason;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// How much of a property was replaced.
enum annals_change_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // The whole value: `old`.
  ANNALS_CHANGE_KIND_WHOLE = 0,
  // A part of it: `path`, `old`.
  ANNALS_CHANGE_KIND_NESTED = 1,
  // Elements of a list in it: `path`, that of the list; `from` and `to`, the range of the new elements; `old`, the list
  // of the old ones.
  ANNALS_CHANGE_KIND_SLICE = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum annals_change_kind annals_change_kind;
#else
typedef uint32_t annals_change_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What kind of error it is. Later versions may have more.
enum annals_error_code
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // There is no error.
  ANNALS_ERROR_CODE_NONE = 0,
  // An argument is NULL, is not UTF-8, or is out of its range.
  ANNALS_ERROR_CODE_ARGUMENT = 1,
  // The definitions cannot be read.
  ANNALS_ERROR_CODE_SCHEMA = 2,
  // The address or the certificates of the configuration cannot be used.
  ANNALS_ERROR_CODE_CONFIG = 3,
  // The operating system refused a socket or a thread.
  ANNALS_ERROR_CODE_SYSTEM = 4,
  // There is no session: wait for ANNALS_EVENT_KIND_CONNECTED.
  ANNALS_ERROR_CODE_NO_SESSION = 5,
  // The entity is not in view.
  ANNALS_ERROR_CODE_NOT_IN_VIEW = 6,
  // There is no such type, property or exposed method.
  ANNALS_ERROR_CODE_NO_SUCH_MEMBER = 7,
  // The arguments do not fit the method.
  ANNALS_ERROR_CODE_WRONG_ARGUMENTS = 8,
  // Too many calls are unconfirmed; poll, and call again later.
  ANNALS_ERROR_CODE_TOO_MANY_CALLS = 9,
  // Another thread is using the client.
  ANNALS_ERROR_CODE_IN_USE = 10,
  // A bug in the library. The client can only be freed.
  ANNALS_ERROR_CODE_PANICKED = 11,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum annals_error_code annals_error_code;
#else
typedef uint32_t annals_error_code;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The kind of a value. In brackets, the types of definitions whose values are of it.
enum annals_value_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // No value: NULL, a mailbox of nobody, a FIXED_DICT that is None.
  ANNALS_VALUE_KIND_NONE = 0,
  // A signed integer (INT8 to INT64).
  ANNALS_VALUE_KIND_INT = 1,
  // An unsigned integer (UINT8 to UINT64).
  ANNALS_VALUE_KIND_UINT = 2,
  // A floating-point number (FLOAT32, FLOAT64).
  ANNALS_VALUE_KIND_FLOAT = 3,
  // Text in UTF-8 (UNICODE_STRING).
  ANNALS_VALUE_KIND_TEXT = 4,
  // Bytes (STRING, BLOB; UDO_REF as 16 bytes; PYTHON and USER_TYPE, which the script host interprets).
  ANNALS_VALUE_KIND_BYTES = 5,
  // Two to four floating-point numbers (VECTOR2 to VECTOR4).
  ANNALS_VALUE_KIND_VECTOR = 6,
  // The address of an entity's part (MAILBOX).
  ANNALS_VALUE_KIND_MAILBOX = 7,
  // Values of one type (ARRAY, TUPLE).
  ANNALS_VALUE_KIND_LIST = 8,
  // Values by field (FIXED_DICT), in the order of the type: annals_type_field finds a field's index.
  ANNALS_VALUE_KIND_DICT = 9,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum annals_value_kind annals_value_kind;
#else
typedef uint32_t annals_value_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// A client that logs in, plays and resumes by itself, as long as annals_client_poll is called. Different threads may use
// it one after the other.
typedef struct annals_client annals_client;

// An error: a code for the program, and a text for its author.
typedef struct annals_error annals_error;

// The definitions of a realm's world. Any number of clients may use them, in any thread.
typedef struct annals_schema annals_schema;

// The type of a property, of an argument or of a part of them; valid as long as the schema it is from.
typedef struct annals_type annals_type;

// A value: of a property, of an argument, or of a part of them.
typedef struct annals_value annals_value;

// What a client is started with. Set all of it to zero first: what is not needed stays NULL. Nothing of it is used after
// annals_client_start has returned.
typedef struct annals_config {
  // The definitions of the realm's world.
  const struct annals_schema *schema;
  // The login service: `host:port`. Of a name with several addresses the first is used, IPv4 before IPv6.
  const char *login;
  // The SHA-256 fingerprint of its certificate, 64 hexadecimal digits, as `annals up` prints it: no other is accepted.
  // For development; either this or `authorities`.
  const char *certificate;
  // The authorities, in PEM, that have signed the certificates of the realm's services.
  const char *authorities;
  // The name in those certificates; NULL if it is the host of `login`.
  const char *server_name;
  // Name and password of an account; or `token`.
  const char *name;
  const char *password;
  // Whether an account of that name and password is to be created: 0 or 1.
  uint8_t is_registration;
  // A token of an identity provider, which names the account.
  const char *token;
  // Any number, different for each client: spreads the retries of many.
  uint64_t seed;
} annals_config;

// A part of an entity, and the view that shows it: ANNALS_PART_BASE or ANNALS_PART_CELL.
typedef uint32_t annals_part;

// A place in a space, metres. `y` is the height.
typedef struct annals_position {
  float x;
  float y;
  float z;
} annals_position;

// A direction, radians.
typedef struct annals_direction {
  float yaw;
  float pitch;
  float roll;
} annals_direction;

// Text in UTF-8, not NUL-terminated. An absent text has no bytes and the length 0.
typedef struct annals_text {
  const char *bytes;
  size_t length;
} annals_text;

// A change of a property. The view has the new value.
typedef struct annals_change {
  annals_change_kind kind;
  // The property's name.
  struct annals_text property;
  // What was there before; NULL if that is not known.
  const struct annals_value *old;
  // Indices of elements and fields, from the outside in.
  const uint32_t *path;
  size_t path_length;
  uint32_t from;
  uint32_t to;
} annals_change;

// Bytes. Absent ones are NULL, with the length 0.
typedef struct annals_bytes {
  const uint8_t *bytes;
  size_t length;
} annals_bytes;

// An event. What it points to is valid until the next call of annals_client_poll or annals_client_free of this client.
// Fields that its kind does not name are zero.
typedef struct annals_event {
  annals_event_kind kind;
  annals_part part;
  annals_reason reason;
  // The number of a space.
  uint32_t space;
  // The number of a type among those of the schema.
  uint16_t type_id;
  // A key in a space's data.
  uint16_t key;
  uint64_t entity;
  uint64_t number;
  uint64_t session;
  struct annals_position position;
  struct annals_direction direction;
  struct annals_text type_name;
  // The name of a property or method.
  struct annals_text member;
  struct annals_text text;
  // Arguments or returned values, as a list.
  const struct annals_value *args;
  const struct annals_change *changes;
  size_t change_count;
  const uint64_t *numbers;
  size_t number_count;
  uint64_t received;
  uint64_t size;
  struct annals_bytes content;
  bool drives;
} annals_event;

// An entity as a view shows it.
typedef struct annals_entity {
  uint64_t id;
  // The history number up to which it was shown.
  uint64_t number;
  // The name of its type, valid as long as the client.
  struct annals_text type_name;
  // The number of its type among those of the schema.
  uint16_t type_id;
  // The view.
  annals_part part;
  // Whether it has a place: those in the base's view have none.
  bool has_place;
  struct annals_position position;
  struct annals_direction direction;
  // The level of detail on which it is shown, 0 for the finest.
  uint32_t level;
} annals_entity;

// The address of an entity's part.
typedef struct annals_mailbox {
  uint64_t entity;
  // The number of its type among those of the schema.
  uint16_t type_id;
  annals_part part;
} annals_mailbox;

// The base part, without a place. The base's view shows the client's own entity alone.
#define ANNALS_PART_BASE 0

// The cell part, which is somewhere in a space. The cell's view shows the surroundings.
#define ANNALS_PART_CELL 1

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The release of the library, NUL-terminated. Header and library belong to the same one.
const char *annals_client_version(void);

// Starts a client: it logs in while it is polled. NULL after an error. Free it with annals_client_free. If the login
// service is given by name, that is looked up first, which may take a while.
struct annals_client *annals_client_start(const struct annals_config *config, struct annals_error **error);

// Closes the connection, which takes up to a third of a second, and frees the client. NULL is allowed. Without
// annals_client_leave before, the realm takes the player for disconnected.
void annals_client_free(struct annals_client *client);

// Takes the next event, and waits for one for up to so many milliseconds; 0 does not wait. Returns whether there was one;
// if not, the event's kind is ANNALS_EVENT_KIND_NONE. The client does everything in these calls: call it in every frame until
// it returns false. After ANNALS_EVENT_KIND_ENDED it returns false at once.
bool annals_client_poll(struct annals_client *client,
                        uint32_t timeout_ms,
                        struct annals_event *event,
                        struct annals_error **error);

// Calls an exposed method of an entity in view. The call is carried out once, however often connections break; it is
// kept and repeated until the realm has logged its effects. `number`, which may be NULL, receives the number that
// ANNALS_EVENT_KIND_ANSWERED, ANNALS_EVENT_KIND_CALL_REFUSED and ANNALS_EVENT_KIND_CALLS_LOST name. `args` are pointers
// to as many values, of which copies are sent; numbers, text and lists are converted to the types of the method. Returns
// false after an error.
bool annals_client_call(struct annals_client *client,
                        uint64_t entity,
                        annals_part part,
                        const char *method,
                        const struct annals_value *const *args,
                        size_t arg_count,
                        uint64_t *number,
                        struct annals_error **error);

// Moves the entity that the client controls. Call it up to ten times per second while it moves. Returns false if there
// is no connection to send it on or the client does not drive the entity; after an error, too.
bool annals_client_move(struct annals_client *client,
                        struct annals_position position,
                        struct annals_direction direction,
                        struct annals_error **error);

// Moves an entity that the client drives, as annals_client_move does its own. Returns false if there is no connection to
// send it on or the client does not drive the entity; after an error, too.
bool annals_client_move_entity(struct annals_client *client,
                               uint64_t entity,
                               struct annals_position position,
                               struct annals_direction direction,
                               struct annals_error **error);

// Ends the session. Poll until ANNALS_EVENT_KIND_ENDED, then free the client.
void annals_client_leave(struct annals_client *client);

// Drops the connection as a failing network would; the client resumes. For tests of a game.
void annals_client_cut(struct annals_client *client);

// The code of an error; ANNALS_ERROR_CODE_NONE for NULL.
annals_error_code annals_error_get_code(const struct annals_error *error);

// The text of an error, NUL-terminated UTF-8, until it is freed; an empty one for NULL.
const char *annals_error_get_text(const struct annals_error *error);

// Frees an error. NULL is allowed.
void annals_error_free(struct annals_error *error);

// Whether the session has a connection to its base.
bool annals_client_is_playing(const struct annals_client *client);

// Whether the client has ended, and does nothing any more.
bool annals_client_has_ended(const struct annals_client *client);

// The entity that the client controls. False if there is no session.
bool annals_client_controls(const struct annals_client *client, uint64_t *entity);

// Whether the client moves this entity: its own, unless the realm has chosen another driver, or one of which the realm
// has chosen the client's entity as the driver (ANNALS_EVENT_KIND_DRIVES).
bool annals_client_drives(const struct annals_client *client, uint64_t entity);

// The number of calls whose effects are not in the realm's log yet.
size_t annals_client_unconfirmed_calls(const struct annals_client *client);

// The entities in a view, ascending: writes up to `capacity` ids, and returns how many there are.
size_t annals_client_entities(const struct annals_client *client, annals_part part, uint64_t *ids, size_t capacity);

// An entity in a view. False if it is not in it.
bool annals_client_entity(const struct annals_client *client,
                          annals_part part,
                          uint64_t entity,
                          struct annals_entity *result);

// A property of an entity in view, as it was shown last. It is valid until the next call of annals_client_poll,
// annals_client_move, annals_client_call, annals_client_leave, annals_client_cut or annals_client_free of this client;
// annals_value_copy keeps it. NULL after an error.
const struct annals_value *annals_client_property(const struct annals_client *client,
                                                  uint64_t entity,
                                                  const char *property,
                                                  struct annals_error **error);

// The space of the client's own entity. False if it is not known yet.
bool annals_client_space(const struct annals_client *client, uint32_t *space);

// The value under a key in the data of that space, valid as a property is. False if there is none.
bool annals_client_space_data(const struct annals_client *client, uint16_t key, struct annals_bytes *result);

// The time of day in that space, seconds since midnight. False if it has none.
bool annals_client_time_of_day(const struct annals_client *client, double *seconds);

// Reads definitions that `annals defs compile` has written. NULL after an error. Free them with annals_schema_free; a
// client keeps what it needs of them.
struct annals_schema *annals_schema_decode(const uint8_t *bytes, size_t length, struct annals_error **error);

// Reads and compiles a folder of `.def` files: the one with `entities.xml`, or the one above its `scripts/`. NULL after
// an error, whose text lists all mistakes. For development: a released game has the file of annals_schema_decode.
struct annals_schema *annals_schema_from_folder(const char *folder, struct annals_error **error);

// Frees definitions. NULL is allowed.
void annals_schema_free(struct annals_schema *schema);

// The name of the entity type with this `type_id`, valid as long as the definitions; empty if there is none. Types are
// numbered from 0 without gaps.
struct annals_text annals_schema_type_name(const struct annals_schema *schema, uint16_t type_id);

// The name of a type's property that clients are shown, from 0, valid as long as the definitions; empty if there is none.
struct annals_text annals_schema_property_name(const struct annals_schema *schema,
                                               uint16_t type_id,
                                               size_t index);

// The type of a property that clients are shown; NULL after an error.
const struct annals_type *annals_schema_property_type(const struct annals_schema *schema,
                                                      const char *entity_type,
                                                      const char *property,
                                                      struct annals_error **error);

// The type of an argument, from 0, of a client method, or of an exposed method of the base or cell part; NULL after an
// error.
const struct annals_type *annals_schema_argument_type(const struct annals_schema *schema,
                                                      const char *entity_type,
                                                      const char *method,
                                                      size_t argument,
                                                      struct annals_error **error);

// The kind of the values of a type. A FIXED_DICT that allows it may also be none, and so may a mailbox.
annals_value_kind annals_type_get_kind(const struct annals_type *data_type);

// The number of fields of a dictionary's type, else 0.
size_t annals_type_field_count(const struct annals_type *data_type);

// The name of a field, from 0; empty if there is none.
struct annals_text annals_type_field_name(const struct annals_type *data_type, size_t field);

// Finds a field by its name: its index in the values of the type, for annals_value_at. Look it up once.
bool annals_type_field(const struct annals_type *data_type,
                       const char *name,
                       size_t *index,
                       struct annals_error **error);

// The type of a dictionary's field, from 0, or, with any index, of a list's elements; NULL if there is none.
const struct annals_type *annals_type_part(const struct annals_type *data_type, size_t index);

// The kind of a value.
annals_value_kind annals_value_get_kind(const struct annals_value *value);

// Reads an integer of either kind. False, and no result, if the value is none or does not fit.
bool annals_value_get_int(const struct annals_value *value, int64_t *result);

// Reads an integer of either kind. False, and no result, if the value is none or does not fit.
bool annals_value_get_uint(const struct annals_value *value, uint64_t *result);

// Reads a number of any kind, integers as the nearest floating-point number. False, and no result, if the value is none.
bool annals_value_get_float(const struct annals_value *value,
                            double *result);

// Reads text, or bytes that are UTF-8; it is valid as long as the value. False, and no result, if the value is none.
bool annals_value_get_text(const struct annals_value *value, struct annals_text *result);

// Reads bytes, or those of a text; they are valid as long as the value. False, and no result, if the value is none.
bool annals_value_get_bytes(const struct annals_value *value, struct annals_bytes *result);

// Reads a vector into an array of four, and returns the number of its parts: 2 to 4, or 0 if the value is none.
size_t annals_value_get_vector(const struct annals_value *value, float *result);

// Reads a mailbox. False, and no result, if the value is none.
bool annals_value_get_mailbox(const struct annals_value *value, struct annals_mailbox *result);

// The number of elements of a list, or of fields of a dictionary; else 0.
size_t annals_value_count(const struct annals_value *value);

// An element of a list or a field of a dictionary, from 0, valid as long as the value; NULL if there is none.
const struct annals_value *annals_value_at(const struct annals_value *value, size_t index);

// A copy of a value, to keep it or to pass it on; NULL for NULL.
struct annals_value *annals_value_copy(const struct annals_value *value);

// Makes a value that is none. Every value that was made or copied has to be freed with annals_value_free. Numbers, text
// and bytes that are made so fit all types that can hold them: annals_client_call converts them.
struct annals_value *annals_value_new_none(void);

// Makes an integer.
struct annals_value *annals_value_new_int(int64_t number);

// Makes an unsigned integer.
struct annals_value *annals_value_new_uint(uint64_t number);

// Makes a floating-point number.
struct annals_value *annals_value_new_float(double number);

// Makes text from UTF-8. NULL after an error.
struct annals_value *annals_value_new_text(const char *bytes, size_t length, struct annals_error **error);

// Makes bytes. NULL after an error.
struct annals_value *annals_value_new_bytes(const uint8_t *bytes, size_t length, struct annals_error **error);

// Makes a vector of two to four parts. NULL after an error.
struct annals_value *annals_value_new_vector(const float *parts, size_t count, struct annals_error **error);

// Makes an empty list. With a value for each field in their order it also serves as a dictionary.
struct annals_value *annals_value_new_list(void);

// Appends a copy of an element to a list that was made, or copied. The element still has to be freed.
bool annals_value_push(struct annals_value *list, const struct annals_value *element, struct annals_error **error);

// Frees a value that was made or copied. NULL is allowed.
void annals_value_free(struct annals_value *value);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* ANNALS_CLIENT_H */

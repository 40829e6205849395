// Calls every function with what it takes and with what it must refuse, without a realm: NULL, text that is not UTF-8,
// numbers without meaning, values of the wrong kind.
//
//   calls SCHEMA FOLDER
#define _POSIX_C_SOURCE 200809L
#include <annals_client.h>

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                              \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                        \
    }                                                                 \
  } while (0)

#define NOT_UTF8 "\xff\xfe"

// Checks that there is an error of this code with a text, frees it, and forgets it.
static void expect(annals_error **error, annals_error_code code, const char *part, int line) {
  if (*error == NULL || annals_error_get_code(*error) != code || strstr(annals_error_get_text(*error), part) == NULL) {
    fprintf(stderr, "line %d: not error %u with \"%s\", but %u: %s\n", line, (unsigned)code, part,
            (unsigned)annals_error_get_code(*error), annals_error_get_text(*error));
    exit(1);
  }
  annals_error_free(*error);
  *error = NULL;
}
#define EXPECT(code, part) expect(&error, ANNALS_ERROR_CODE_##code, part, __LINE__)

static bool is(annals_text text, const char *expected) {
  return text.length == strlen(expected) && memcmp(text.bytes, expected, text.length) == 0;
}

static void errors(void) {
  CHECK(annals_error_get_code(NULL) == ANNALS_ERROR_CODE_NONE);
  CHECK(strcmp(annals_error_get_text(NULL), "") == 0);
  annals_error_free(NULL);
  // A place that was not initialised is overwritten, also by success.
  annals_error *error = (annals_error *)&error;
  annals_value *text = annals_value_new_text("a", 1, &error);
  CHECK(text != NULL && error == NULL);
  annals_value_free(text);
  CHECK(annals_value_new_text(NULL, 1, NULL) == NULL);
  CHECK(strlen(annals_client_version()) >= 5);
}

static void scalars(void) {
  annals_error *error = NULL;
  int64_t integer = 7;
  uint64_t natural = 7;
  double number = 7;
  annals_text text;
  annals_bytes bytes;
  annals_mailbox mailbox;
  float parts[4] = {0};

  annals_value *value = annals_value_new_int(-1);
  CHECK(annals_value_get_kind(value) == ANNALS_VALUE_KIND_INT);
  CHECK(annals_value_get_int(value, &integer) && integer == -1);
  CHECK(!annals_value_get_uint(value, &natural) && natural == 7);
  CHECK(annals_value_get_float(value, &number) && number == -1);
  CHECK(annals_value_get_int(value, NULL));
  CHECK(!annals_value_get_text(value, &text) && !annals_value_get_bytes(value, &bytes));
  CHECK(!annals_value_get_mailbox(value, &mailbox) && annals_value_get_vector(value, parts) == 0);
  CHECK(annals_value_count(value) == 0 && annals_value_at(value, 0) == NULL);
  annals_value_free(value);

  value = annals_value_new_uint(UINT64_MAX);
  CHECK(annals_value_get_kind(value) == ANNALS_VALUE_KIND_UINT);
  CHECK(annals_value_get_uint(value, &natural) && natural == UINT64_MAX);
  CHECK(!annals_value_get_int(value, &integer));
  annals_value_free(value);

  value = annals_value_new_float(0.5);
  CHECK(annals_value_get_kind(value) == ANNALS_VALUE_KIND_FLOAT);
  CHECK(annals_value_get_float(value, &number) && number == 0.5 && !annals_value_get_int(value, &integer));
  annals_value_free(value);

  value = annals_value_new_text("a\0b", 3, &error);
  CHECK(annals_value_get_kind(value) == ANNALS_VALUE_KIND_TEXT);
  CHECK(annals_value_get_text(value, &text) && text.length == 3 && memcmp(text.bytes, "a\0b", 3) == 0);
  CHECK(annals_value_get_bytes(value, &bytes) && bytes.length == 3);
  annals_value_free(value);
  value = annals_value_new_text(NULL, 0, &error);
  CHECK(annals_value_get_text(value, &text) && text.length == 0);
  annals_value_free(value);
  CHECK(annals_value_new_text(NOT_UTF8, 2, &error) == NULL);
  EXPECT(ARGUMENT, "UTF-8");
  CHECK(annals_value_new_text(NULL, 1, &error) == NULL);
  EXPECT(ARGUMENT, "NULL");
  CHECK(annals_value_new_text("a", SIZE_MAX, &error) == NULL);
  EXPECT(ARGUMENT, "cannot be");

  value = annals_value_new_bytes((const uint8_t *)NOT_UTF8, 2, &error);
  CHECK(annals_value_get_kind(value) == ANNALS_VALUE_KIND_BYTES);
  CHECK(annals_value_get_bytes(value, &bytes) && bytes.length == 2 && bytes.bytes[0] == 0xff);
  CHECK(!annals_value_get_text(value, &text));
  annals_value_free(value);

  const float four[] = {1, 2, 3, 4};
  for (size_t count = 2; count <= 4; count++) {
    value = annals_value_new_vector(four, count, &error);
    CHECK(annals_value_get_kind(value) == ANNALS_VALUE_KIND_VECTOR);
    CHECK(annals_value_get_vector(value, NULL) == count);
    CHECK(annals_value_get_vector(value, parts) == count && parts[count - 1] == (float)count);
    annals_value_free(value);
  }
  CHECK(annals_value_new_vector(four, 1, &error) == NULL);
  EXPECT(ARGUMENT, "2 to 4");
  CHECK(annals_value_new_vector(four, SIZE_MAX, &error) == NULL);
  EXPECT(ARGUMENT, "2 to 4");
  CHECK(annals_value_new_vector(NULL, 3, &error) == NULL);
  EXPECT(ARGUMENT, "NULL");

  value = annals_value_new_none();
  CHECK(value != NULL && annals_value_get_kind(value) == ANNALS_VALUE_KIND_NONE);
  annals_value_free(value);
  CHECK(annals_value_get_kind(NULL) == ANNALS_VALUE_KIND_NONE && annals_value_copy(NULL) == NULL);
  CHECK(!annals_value_get_int(NULL, &integer) && !annals_value_get_text(NULL, &text));
  CHECK(annals_value_get_vector(NULL, parts) == 0 && annals_value_count(NULL) == 0);
  CHECK(annals_value_at(NULL, 0) == NULL);
  annals_value_free(NULL);
}

static void lists(void) {
  annals_error *error = NULL;
  annals_value *list = annals_value_new_list();
  annals_value *element = annals_value_new_int(5);
  CHECK(annals_value_push(list, element, &error) && annals_value_push(list, element, &error));
  // A copy of itself, as it was.
  CHECK(annals_value_push(list, list, &error));
  CHECK(annals_value_count(list) == 3 && annals_value_count(annals_value_at(list, 2)) == 2);
  CHECK(annals_value_at(list, 3) == NULL && annals_value_at(list, SIZE_MAX) == NULL);
  CHECK(!annals_value_push(element, list, &error));
  EXPECT(ARGUMENT, "not a list");
  CHECK(!annals_value_push(NULL, list, &error));
  EXPECT(ARGUMENT, "list is NULL");
  CHECK(!annals_value_push(list, NULL, &error));
  EXPECT(ARGUMENT, "element is NULL");
  CHECK(!annals_value_push((annals_value *)((char *)list + 1), element, &error));
  EXPECT(ARGUMENT, "misaligned");
  CHECK(!annals_value_push(list, NULL, NULL));

  annals_value *copy = annals_value_copy(list);
  annals_value_free(list);
  int64_t number;
  CHECK(annals_value_get_int(annals_value_at(copy, 1), &number) && number == 5);
  annals_value_free(copy);

  // Nesting has a limit: no walk over a value overflows the stack.
  annals_value *deep = annals_value_new_list();
  int levels = 1;
  for (;;) {
    annals_value *outer = annals_value_new_list();
    bool pushed = annals_value_push(outer, deep, &error);
    annals_value_free(deep);
    deep = outer;
    if (!pushed) {
      break;
    }
    CHECK(++levels < 1000);
  }
  EXPECT(ARGUMENT, "nested");
  annals_value_free(deep);
  annals_value_free(element);
}

static annals_schema *schemas(const char *path, const char *folder) {
  annals_error *error = NULL;
  static uint8_t bytes[1 << 20];
  FILE *file = fopen(path, "rb");
  CHECK(file != NULL);
  size_t length = fread(bytes, 1, sizeof bytes, file);
  fclose(file);

  CHECK(annals_schema_decode(NULL, 8, &error) == NULL);
  EXPECT(ARGUMENT, "NULL");
  CHECK(annals_schema_decode(NULL, 0, &error) == NULL);
  EXPECT(SCHEMA, "");
  CHECK(annals_schema_decode(bytes, length - 1, &error) == NULL);
  EXPECT(SCHEMA, "");
  CHECK(annals_schema_from_folder(NULL, &error) == NULL);
  EXPECT(ARGUMENT, "folder");
  CHECK(annals_schema_from_folder(NOT_UTF8, &error) == NULL);
  EXPECT(ARGUMENT, "UTF-8");
  CHECK(annals_schema_from_folder("/nowhere", &error) == NULL);
  EXPECT(SCHEMA, "");
  annals_schema *compiled = annals_schema_from_folder(folder, &error);
  CHECK(compiled != NULL && error == NULL);
  annals_schema_free(compiled);
  annals_schema_free(NULL);

  annals_schema *schema = annals_schema_decode(bytes, length, &error);
  CHECK(schema != NULL && error == NULL);
  return schema;
}

static void types(const annals_schema *schema) {
  annals_error *error = NULL;
  const annals_type *appearance = annals_schema_property_type(schema, "Avatar", "appearance", &error);
  CHECK(annals_type_get_kind(appearance) == ANNALS_VALUE_KIND_DICT && annals_type_field_count(appearance) == 3);
  CHECK(is(annals_type_field_name(appearance, 0), "hair"));
  CHECK(annals_type_field_name(appearance, 3).length == 0);
  size_t outfit = 9;
  CHECK(annals_type_field(appearance, "outfit", &outfit, &error) && outfit == 2);
  CHECK(!annals_type_field(appearance, "hat", &outfit, &error) && outfit == 2);
  EXPECT(NO_SUCH_MEMBER, "hat");
  CHECK(!annals_type_field(NULL, "hat", &outfit, &error));
  EXPECT(ARGUMENT, "type");
  const annals_type *list = annals_type_part(appearance, outfit);
  CHECK(annals_type_get_kind(list) == ANNALS_VALUE_KIND_LIST);
  CHECK(annals_type_get_kind(annals_type_part(list, 100)) == ANNALS_VALUE_KIND_UINT);
  CHECK(!annals_type_field(list, "hair", NULL, &error));
  EXPECT(NO_SUCH_MEMBER, "no fields");
  CHECK(annals_type_part(appearance, 3) == NULL && annals_type_part(annals_type_part(list, 0), 0) == NULL);
  CHECK(annals_type_part(NULL, 0) == NULL && annals_type_field_count(NULL) == 0);
  CHECK(annals_type_get_kind(NULL) == ANNALS_VALUE_KIND_NONE && annals_type_field_name(NULL, 0).bytes == NULL);

  const annals_type *key = annals_schema_argument_type(schema, "Chest", "turnKey", 0, &error);
  CHECK(annals_type_get_kind(key) == ANNALS_VALUE_KIND_BYTES);
  const annals_type *said = annals_schema_argument_type(schema, "Avatar", "onSay", 0, &error);
  CHECK(annals_type_get_kind(said) == ANNALS_VALUE_KIND_TEXT);
  CHECK(annals_schema_argument_type(schema, "Avatar", "onSay", SIZE_MAX, &error) == NULL);
  EXPECT(ARGUMENT, "1 arguments");
  CHECK(annals_schema_argument_type(schema, "Avatar", "addGold", 0, &error) == NULL);
  EXPECT(NO_SUCH_MEMBER, "addGold");
  CHECK(annals_schema_property_type(schema, "Avatar", "steps", &error) == NULL);
  EXPECT(NO_SUCH_MEMBER, "steps");
  CHECK(annals_schema_property_type(schema, "Dragon", "name", &error) == NULL);
  EXPECT(NO_SUCH_MEMBER, "Dragon");
  CHECK(annals_schema_property_type(NULL, "Avatar", "name", &error) == NULL);
  EXPECT(ARGUMENT, "schema");
  CHECK(annals_schema_property_type(schema, NULL, "name", &error) == NULL);
  EXPECT(ARGUMENT, "entity_type");
  CHECK(annals_schema_property_type(schema, "Avatar", NOT_UTF8, &error) == NULL);
  EXPECT(ARGUMENT, "property is not UTF-8");

  CHECK(annals_schema_type_name(schema, 0).length > 0 && annals_schema_type_name(schema, UINT16_MAX).length == 0);
  CHECK(annals_schema_property_name(schema, 0, SIZE_MAX).length == 0);
  CHECK(annals_schema_property_name(schema, UINT16_MAX, 0).length == 0);
  CHECK(annals_schema_type_name(NULL, 0).length == 0);
  bool found = false;
  for (uint16_t type = 0; annals_schema_type_name(schema, type).length > 0; type++) {
    for (size_t i = 0; annals_schema_property_name(schema, type, i).length > 0; i++) {
      found = found || (is(annals_schema_type_name(schema, type), "Avatar") &&
                        is(annals_schema_property_name(schema, type, i), "mood"));
    }
  }
  CHECK(found);
}

#define FINGERPRINT "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

// A configuration of a realm that does not exist.
static annals_config settings(const annals_schema *schema) {
  annals_config config = {0};
  config.schema = schema;
  config.login = "127.0.0.1:9";
  config.certificate = FINGERPRINT;
  config.name = "ann";
  config.password = "secret";
  return config;
}

static void refuse(const annals_config *config, annals_error_code code, const char *part, int line) {
  annals_error *error = NULL;
  CHECK(annals_client_start(config, &error) == NULL);
  expect(&error, code, part, line);
  CHECK(annals_client_start(config, NULL) == NULL);
}
#define REFUSE(code, part) refuse(&config, ANNALS_ERROR_CODE_##code, part, __LINE__)

static void configs(const annals_schema *schema) {
  refuse(NULL, ANNALS_ERROR_CODE_ARGUMENT, "config is NULL", __LINE__);
  annals_config config = {0};
  REFUSE(ARGUMENT, "config.schema");
  config.schema = schema;
  REFUSE(ARGUMENT, "config.login");

  config = settings(schema);
  config.login = NOT_UTF8;
  REFUSE(ARGUMENT, "config.login");
  config.login = "127.0.0.1";
  REFUSE(CONFIG, "host:port");
  config = settings(schema);
  config.certificate = "00";
  REFUSE(CONFIG, "fingerprint");
  config.certificate = NULL;
  REFUSE(CONFIG, "authorities");
  config.authorities = "no PEM";
  REFUSE(CONFIG, "no certificate");
  config.authorities = "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n";
  REFUSE(CONFIG, "PEM");
  config.authorities = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
  REFUSE(CONFIG, "no authority");
  config.certificate = FINGERPRINT;
  REFUSE(CONFIG, "not both");
  config = settings(schema);
  config.password = NULL;
  REFUSE(CONFIG, "password");
  config.token = "token";
  REFUSE(CONFIG, "alone");
  config.name = NULL;
  config.is_registration = true;
  REFUSE(CONFIG, "alone");
}

static void *poll_long(void *client) {
  annals_event event;
  annals_error *error = NULL;
  annals_error_code code;
  // Until the client is this thread's.
  do {
    annals_client_poll(client, 2000, &event, &error);
    code = annals_error_get_code(error);
    annals_error_free(error);
  } while (code == ANNALS_ERROR_CODE_IN_USE);
  return NULL;
}

// While one thread waits in the client, another is refused.
static void threads(annals_client *client) {
  annals_error *error = NULL;
  const annals_position position = {0, 0, 0};
  const annals_direction direction = {0, 0, 0};
  pthread_t other;
  CHECK(pthread_create(&other, NULL, poll_long, client) == 0);
  annals_error_code code = ANNALS_ERROR_CODE_NONE;
  for (int tries = 0; tries < 100000000 && code != ANNALS_ERROR_CODE_IN_USE; tries++) {
    sched_yield();
    annals_client_move(client, position, direction, &error);
    code = annals_error_get_code(error);
    annals_error_free(error);
  }
  CHECK(code == ANNALS_ERROR_CODE_IN_USE);
  CHECK(!annals_client_is_playing(client));
  CHECK(pthread_join(other, NULL) == 0);
}

static void calls_of_a_client(annals_client *client) {
  annals_error *error = NULL;
  annals_event event;
  annals_entity entity;
  annals_bytes bytes;
  uint64_t id;
  uint32_t space;
  double seconds;
  CHECK(!annals_client_poll(client, 0, &event, &error) && error == NULL && event.kind == ANNALS_EVENT_KIND_NONE);
  CHECK(!annals_client_poll(client, 0, NULL, &error));
  EXPECT(ARGUMENT, "event is NULL");
  CHECK(!annals_client_poll(NULL, 0, &event, &error));
  EXPECT(ARGUMENT, "client is NULL");
  CHECK(!annals_client_is_playing(client) && !annals_client_has_ended(client));
  CHECK(!annals_client_is_playing(NULL) && !annals_client_has_ended(NULL));
  CHECK(!annals_client_controls(client, &id) && !annals_client_controls(NULL, &id));
  CHECK(annals_client_unconfirmed_calls(client) == 0 && annals_client_unconfirmed_calls(NULL) == 0);
  CHECK(annals_client_entities(client, ANNALS_PART_CELL, &id, 1) == 0);
  CHECK(annals_client_entities(client, ANNALS_PART_CELL, NULL, 1) == 0);
  CHECK(annals_client_entities(client, 7, &id, 1) == 0 && annals_client_entities(NULL, 0, &id, 1) == 0);
  CHECK(!annals_client_entity(client, ANNALS_PART_CELL, 1, &entity));
  CHECK(!annals_client_entity(client, UINT32_MAX, 1, &entity) && !annals_client_entity(NULL, 0, 1, NULL));
  CHECK(!annals_client_space(client, &space) && !annals_client_space_data(client, 1, &bytes));
  CHECK(!annals_client_time_of_day(client, &seconds) && !annals_client_time_of_day(NULL, NULL));

  CHECK(annals_client_property(client, 1, "hp", &error) == NULL);
  EXPECT(NOT_IN_VIEW, "1");
  CHECK(annals_client_property(client, 1, NULL, &error) == NULL);
  EXPECT(ARGUMENT, "property");
  CHECK(annals_client_property(NULL, 1, "hp", &error) == NULL);
  EXPECT(ARGUMENT, "client");

  CHECK(!annals_client_call(client, 1, ANNALS_PART_CELL, "say", NULL, 0, NULL, &error));
  EXPECT(NO_SESSION, "session");
  CHECK(!annals_client_call(client, 1, 9, "say", NULL, 0, NULL, &error));
  EXPECT(ARGUMENT, "part 9");
  CHECK(!annals_client_call(client, 1, ANNALS_PART_CELL, NULL, NULL, 0, NULL, &error));
  EXPECT(ARGUMENT, "method");
  CHECK(!annals_client_call(client, 1, ANNALS_PART_CELL, "say", NULL, 1, NULL, &error));
  EXPECT(ARGUMENT, "args");
  const annals_value *arguments[] = {NULL};
  CHECK(!annals_client_call(client, 1, ANNALS_PART_CELL, "say", arguments, 1, NULL, &error));
  EXPECT(ARGUMENT, "argument");
  CHECK(!annals_client_call(client, 1, ANNALS_PART_CELL, "say", arguments, SIZE_MAX, NULL, &error));
  EXPECT(ARGUMENT, "cannot be");
  CHECK(!annals_client_call(NULL, 1, ANNALS_PART_CELL, "say", NULL, 0, NULL, &error));
  EXPECT(ARGUMENT, "client");

  annals_position position = {0, 0, 0};
  annals_direction direction = {0, 0, 0};
  CHECK(!annals_client_move(client, position, direction, &error) && error == NULL);
  position.x = (float)NAN;
  CHECK(!annals_client_move(client, position, direction, &error));
  EXPECT(ARGUMENT, "finite");
  CHECK(!annals_client_move_entity(client, 1, position, direction, &error));
  EXPECT(ARGUMENT, "finite");
  position.x = 0;
  CHECK(!annals_client_move_entity(client, 1, position, direction, &error) && error == NULL);
  CHECK(!annals_client_move_entity(NULL, 1, position, direction, &error));
  EXPECT(ARGUMENT, "client");
  CHECK(!annals_client_drives(client, 1) && !annals_client_drives(NULL, 1));
  annals_client_leave(NULL);
  annals_client_cut(NULL);
  annals_client_cut(client);
  annals_client_free(NULL);
}

static void clients(const char *path, const char *folder) {
  annals_error *error = NULL;
  annals_event event;
  annals_schema *schema = schemas(path, folder);
  types(schema);
  configs(schema);
  annals_config config = settings(schema);
  annals_client *client = annals_client_start(&config, &error);
  CHECK(client != NULL && error == NULL);
  // The client keeps what it needs.
  annals_schema_free(schema);
  calls_of_a_client(client);
  threads(client);
  annals_client_leave(client);
  CHECK(annals_client_poll(client, 0, &event, &error) && event.kind == ANNALS_EVENT_KIND_ENDED);
  CHECK(event.reason == ANNALS_REASON_LEFT && is(event.text, "the client disconnected"));
  CHECK(annals_client_has_ended(client));
  CHECK(!annals_client_poll(client, UINT32_MAX, &event, &error) && error == NULL);
  CHECK(event.kind == ANNALS_EVENT_KIND_NONE);
  annals_client_leave(client);
  annals_client_free(client);
}

int main(int count, char **arguments) {
  CHECK(count == 3);
  errors();
  scalars();
  lists();
  clients(arguments[1], arguments[2]);
  printf("all refused\n");
  return 0;
}

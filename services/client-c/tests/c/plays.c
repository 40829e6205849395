// Plays in a live realm of the sample world, and checks what it is shown. The test that runs it logs in beside it, sees it
// walk, and waves.
//
//   plays HOST:PORT AUTHORITIES FOLDER NAME PASSWORD
//
// AUTHORITIES is a file of certificates in PEM, which are for localhost, and FOLDER that of the definitions.
// Prints "avatar ENTITY X Z" once it walks to X Z, "drives ENTITY X Z" once it has moved another avatar to X Z, and "left"
// at the end.
#define _POSIX_C_SOURCE 200809L
#include <annals_client.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHECK(condition)                                              \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                        \
    }                                                                 \
  } while (0)

// Seconds within which anything that is waited for must happen, on a busy machine.
enum { WITHIN = 50 };

enum { FRAME_MS = 16, FRAMES_PER_STEP = 6, STEPS = 10 };

static annals_client *client;

// The last event, and which kinds there were.
static annals_event event;
static bool seen[32];

static bool is(annals_text text, const char *expected) {
  return text.length == strlen(expected) && memcmp(text.bytes, expected, text.length) == 0;
}

static void no_error(annals_error *error, int line) {
  if (error != NULL) {
    fprintf(stderr, "line %d: %s\n", line, annals_error_get_text(error));
    exit(1);
  }
}

static void expect(annals_error *error, annals_error_code code, int line) {
  if (annals_error_get_code(error) != code) {
    fprintf(stderr, "line %d: not %u: %s\n", line, (unsigned)code, annals_error_get_text(error));
    exit(1);
  }
  annals_error_free(error);
}

// Takes an event. Returns false if there is none, after the rest of a frame: as a game does, which never waits in a poll.
static bool next(void) {
  annals_error *error = NULL;
  bool has_event = annals_client_poll(client, 0, &event, &error);
  no_error(error, __LINE__);
  if (!has_event) {
    const struct timespec frame = {0, FRAME_MS * 1000000L};
    nanosleep(&frame, NULL);
  }
  if (has_event) {
    CHECK(event.kind > ANNALS_EVENT_KIND_NONE && event.kind < 32);
    seen[event.kind] = true;
  }
  return has_event;
}

// Takes events until there is one of this kind, and, if it is named, of this member.
static void wait_for(annals_event_kind kind, const char *member) {
  time_t end = time(NULL) + WITHIN;
  for (;;) {
    if (time(NULL) >= end) {
      fprintf(stderr, "no event %u %s within %d s\n", (unsigned)kind, member == NULL ? "" : member, WITHIN);
      exit(1);
    }
    if (next() && event.kind == kind && (member == NULL || is(event.member, member))) {
      return;
    }
  }
}

static const annals_value *property(uint64_t entity, const char *name) {
  annals_error *error = NULL;
  const annals_value *value = annals_client_property(client, entity, name, &error);
  no_error(error, __LINE__);
  CHECK(value != NULL);
  return value;
}

// Calls a method with one argument, which it frees, or none.
static uint64_t call(uint64_t entity, annals_part part, const char *method, annals_value *argument) {
  annals_error *error = NULL;
  uint64_t number = 0;
  const annals_value *arguments[] = {argument};
  bool called = annals_client_call(client, entity, part, method, arguments, argument == NULL ? 0 : 1, &number, &error);
  no_error(error, __LINE__);
  CHECK(called && number > 0);
  annals_value_free(argument);
  return number;
}

static annals_value *text_value(const char *text) { return annals_value_new_text(text, strlen(text), NULL); }

// Logs in, and waits until the avatar is somewhere.
static annals_entity enter(void) {
  wait_for(ANNALS_EVENT_KIND_CONNECTED, NULL);
  CHECK(event.session != 0 && is(event.type_name, "Account"));
  wait_for(ANNALS_EVENT_KIND_CONTROLS, NULL);
  CHECK(is(event.type_name, "Avatar"));
  uint64_t self = event.entity;
  annals_entity avatar = {0};
  time_t end = time(NULL) + WITHIN;
  // Its properties are sent by the base and by the cell, and so is its space.
  bool refreshed[2] = {false, false};
  while (!refreshed[ANNALS_PART_BASE] || !refreshed[ANNALS_PART_CELL] || !seen[ANNALS_EVENT_KIND_SPACE_ENTERED]) {
    CHECK(time(NULL) < end);
    if (next() && event.kind == ANNALS_EVENT_KIND_REFRESHED && event.entity == self) {
      CHECK(event.part < 2 && is(event.type_name, "Avatar"));
      refreshed[event.part] = true;
    }
  }
  CHECK(annals_client_entity(client, ANNALS_PART_CELL, self, &avatar));
  uint64_t controlled = 0;
  uint32_t space = 0;
  CHECK(annals_client_controls(client, &controlled) && controlled == self && annals_client_is_playing(client));
  CHECK(annals_client_space(client, &space) && space != 0);
  CHECK(avatar.id == self && avatar.has_place && is(avatar.type_name, "Avatar") && avatar.part == ANNALS_PART_CELL);
  annals_entity base;
  CHECK(annals_client_entity(client, ANNALS_PART_BASE, self, &base) && !base.has_place && base.type_id == avatar.type_id);
  return avatar;
}

// Reads a property of each kind.
static void read_values(const annals_schema *schema, uint64_t self) {
  annals_error *error = NULL;
  annals_text text;
  int64_t integer;
  uint64_t natural;
  double number;
  CHECK(annals_value_get_kind(property(self, "name")) == ANNALS_VALUE_KIND_TEXT);
  CHECK(annals_value_get_text(property(self, "name"), &text) && text.length > 9 && memcmp(text.bytes, "Wanderer ", 9) == 0);
  CHECK(annals_value_get_kind(property(self, "hp")) == ANNALS_VALUE_KIND_INT);
  CHECK(annals_value_get_int(property(self, "hp"), &integer) && integer == 100);
  CHECK(annals_value_get_kind(property(self, "gold")) == ANNALS_VALUE_KIND_UINT);
  CHECK(annals_value_get_uint(property(self, "gold"), &natural) && natural == 100);
  CHECK(annals_value_get_kind(property(self, "readiness")) == ANNALS_VALUE_KIND_FLOAT);
  CHECK(annals_value_get_float(property(self, "readiness"), &number) && number == 1.0);
  // Of the base part.
  CHECK(annals_value_get_kind(property(self, "friends")) == ANNALS_VALUE_KIND_LIST);

  const annals_type *type = annals_schema_property_type(schema, "Avatar", "appearance", &error);
  size_t hair = 0, outfit = 0;
  CHECK(annals_type_field(type, "hair", &hair, &error) && annals_type_field(type, "outfit", &outfit, &error));
  const annals_value *appearance = property(self, "appearance");
  CHECK(annals_value_get_kind(appearance) == ANNALS_VALUE_KIND_DICT && annals_value_count(appearance) == 3);
  CHECK(annals_value_get_uint(annals_value_at(appearance, hair), &natural) && natural == 7);
  CHECK(annals_value_count(annals_value_at(appearance, outfit)) == 4);
  CHECK(annals_value_at(appearance, 3) == NULL);

  CHECK(annals_client_property(client, self, "steps", &error) == NULL);
  expect(error, ANNALS_ERROR_CODE_NO_SUCH_MEMBER, __LINE__);
  CHECK(annals_client_property(client, UINT64_MAX, "hp", &error) == NULL);
  expect(error, ANNALS_ERROR_CODE_NOT_IN_VIEW, __LINE__);
}

// What does not fit is refused before it is sent.
static void refused_here(uint64_t self) {
  annals_error *error = NULL;
  annals_value *wrong = annals_value_new_float(0.5);
  annals_value *large = annals_value_new_uint(256);
  const annals_value *arguments[] = {wrong, large};
  CHECK(!annals_client_call(client, self, ANNALS_PART_CELL, "dance", NULL, 0, NULL, &error));
  expect(error, ANNALS_ERROR_CODE_NO_SUCH_MEMBER, __LINE__);
  CHECK(!annals_client_call(client, self, ANNALS_PART_BASE, "say", arguments, 1, NULL, &error));
  expect(error, ANNALS_ERROR_CODE_NO_SUCH_MEMBER, __LINE__);
  CHECK(!annals_client_call(client, self, ANNALS_PART_CELL, "addGold", arguments, 1, NULL, &error));
  expect(error, ANNALS_ERROR_CODE_NO_SUCH_MEMBER, __LINE__);
  CHECK(!annals_client_call(client, self, ANNALS_PART_CELL, "setMood", NULL, 0, NULL, &error));
  expect(error, ANNALS_ERROR_CODE_WRONG_ARGUMENTS, __LINE__);
  CHECK(!annals_client_call(client, self, ANNALS_PART_CELL, "setMood", arguments, 2, NULL, &error));
  expect(error, ANNALS_ERROR_CODE_WRONG_ARGUMENTS, __LINE__);
  CHECK(!annals_client_call(client, self, ANNALS_PART_CELL, "setMood", arguments, 1, NULL, &error));
  expect(error, ANNALS_ERROR_CODE_WRONG_ARGUMENTS, __LINE__);
  CHECK(!annals_client_call(client, self, ANNALS_PART_CELL, "setMood", arguments + 1, 1, NULL, &error));
  expect(error, ANNALS_ERROR_CODE_WRONG_ARGUMENTS, __LINE__);
  CHECK(!annals_client_call(client, UINT64_MAX, ANNALS_PART_CELL, "setMood", arguments, 1, NULL, &error));
  expect(error, ANNALS_ERROR_CODE_NOT_IN_VIEW, __LINE__);
  CHECK(annals_client_unconfirmed_calls(client) == 0);
  annals_value_free(wrong);
  annals_value_free(large);
}

// Walks ten metres, and stands there until somebody waves.
static void walk(const annals_entity *avatar) {
  annals_error *error = NULL;
  annals_position position = avatar->position;
  annals_direction direction = {1.5f, 0, 0};
  printf("avatar %llu %f %f\n", (unsigned long long)avatar->id, position.x + STEPS, position.z);
  fflush(stdout);
  time_t end = time(NULL) + WITHIN;
  int frames = 0, steps = 0;
  while (!(event.kind == ANNALS_EVENT_KIND_CALLED && is(event.member, "onWave"))) {
    CHECK(time(NULL) < end);
    if (next() || ++frames % FRAMES_PER_STEP != 0) {
      continue;
    }
    if (steps < STEPS) {
      steps++;
      position.x += 1;
    }
    CHECK(annals_client_move(client, position, direction, &error) && error == NULL);
  }
  CHECK(event.entity == avatar->id && is(event.type_name, "Avatar") && event.number > 0);
  uint64_t from = 0;
  CHECK(annals_value_get_kind(event.args) == ANNALS_VALUE_KIND_LIST && annals_value_count(event.args) == 1);
  CHECK(annals_value_get_uint(annals_value_at(event.args, 0), &from) && from != 0);
  annals_entity moved;
  CHECK(annals_client_entity(client, ANNALS_PART_CELL, avatar->id, &moved));
  CHECK(moved.position.x == position.x && moved.direction.yaw == 1.5f);
}

// Another avatar that the client drives; 0 if there is none.
static uint64_t driven(uint64_t self) {
  uint64_t ids[64];
  size_t count = annals_client_entities(client, ANNALS_PART_CELL, ids, 64);
  for (size_t i = 0; i < count && i < 64; i++) {
    if (ids[i] != self && annals_client_drives(client, ids[i])) {
      return ids[i];
    }
  }
  return 0;
}

// Moves the avatar of the player who follows, until that player does not follow any more.
static void drive(uint64_t self) {
  annals_error *error = NULL;
  const annals_direction direction = {0, 0, 0};
  uint64_t other = 0;
  time_t end = time(NULL) + WITHIN;
  CHECK(annals_client_drives(client, self));
  while ((other = driven(self)) == 0) {
    CHECK(time(NULL) < end);
    next();
  }
  CHECK(seen[ANNALS_EVENT_KIND_DRIVES]);
  annals_entity entity;
  CHECK(annals_client_entity(client, ANNALS_PART_CELL, other, &entity) && is(entity.type_name, "Avatar"));
  annals_position to = entity.position;
  to.x -= 2;
  to.z += 3;
  CHECK(annals_client_move_entity(client, other, to, direction, &error) && error == NULL);
  printf("drives %llu %f %f\n", (unsigned long long)other, to.x, to.z);
  fflush(stdout);
  while (annals_client_drives(client, other)) {
    CHECK(time(NULL) < end);
    next();
  }
  CHECK(event.kind == ANNALS_EVENT_KIND_DRIVES && event.entity == other && !event.drives);
  CHECK(!annals_client_move_entity(client, other, to, direction, &error) && error == NULL);
}

// Calls methods of both parts, and sees their effects.
static void call_methods(uint64_t self) {
  uint64_t natural = 0;
  annals_text text;
  // A signed integer for an unsigned type.
  call(self, ANNALS_PART_CELL, "setMood", annals_value_new_int(3));
  wait_for(ANNALS_EVENT_KIND_CHANGED, "mood");
  CHECK(event.entity == self && event.part == ANNALS_PART_CELL && event.change_count == 1);
  CHECK(event.changes[0].kind == ANNALS_CHANGE_KIND_WHOLE && event.changes[0].path_length == 0);
  CHECK(is(event.changes[0].property, "mood"));
  CHECK(annals_value_get_uint(event.changes[0].old, &natural) && natural == 0);
  CHECK(annals_value_get_uint(property(self, "mood"), &natural) && natural == 3);

  call(self, ANNALS_PART_BASE, "ping", annals_value_new_uint(77));
  wait_for(ANNALS_EVENT_KIND_CALLED, "onPong");
  CHECK(annals_value_get_uint(annals_value_at(event.args, 0), &natural) && natural == 77);

  call(self, ANNALS_PART_BASE, "addFriend", text_value("b\xc3\xb6rt"));
  wait_for(ANNALS_EVENT_KIND_CHANGED, "friends");
  const annals_change *change = &event.changes[0];
  CHECK(event.part == ANNALS_PART_BASE && change->kind == ANNALS_CHANGE_KIND_SLICE && change->path_length == 0);
  CHECK(change->from == 0 && change->to == 1 && annals_value_count(change->old) == 0);
  CHECK(annals_value_get_text(annals_value_at(property(self, "friends"), 0), &text) && is(text, "b\xc3\xb6rt"));

  call(self, ANNALS_PART_CELL, "say", text_value("from C"));
  wait_for(ANNALS_EVENT_KIND_CALLED, "onSay");

  // Lists serve as a dictionary: one sword that the player does not hold.
  annals_value *serial = annals_value_new_int(1), *coins = annals_value_new_int(0);
  annals_value *items = annals_value_new_list(), *assets = annals_value_new_list();
  CHECK(annals_value_push(items, serial, NULL));
  CHECK(annals_value_push(assets, coins, NULL) && annals_value_push(assets, items, NULL));
  call(self, ANNALS_PART_BASE, "wear", assets);
  annals_value_free(items);
  annals_value_free(serial);
  annals_value_free(coins);
  wait_for(ANNALS_EVENT_KIND_CALLED, "onOutcome");
  CHECK(annals_value_count(event.args) == 3);
  CHECK(annals_value_get_uint(annals_value_at(event.args, 1), &natural) && natural == 0);
  CHECK(annals_value_get_text(annals_value_at(event.args, 2), &text) && text.length > 0);
}

// The realm refuses to let it speak for another player.
static void refused_there(uint64_t self) {
  uint64_t ids[64], other = 0;
  size_t count = annals_client_entities(client, ANNALS_PART_CELL, ids, 64);
  CHECK(count > 1 && count <= 64 && annals_client_entities(client, ANNALS_PART_CELL, NULL, 0) == count);
  for (size_t i = 0; i < count; i++) {
    annals_entity entity;
    CHECK(annals_client_entity(client, ANNALS_PART_CELL, ids[i], &entity) && entity.id == ids[i]);
    if (is(entity.type_name, "Avatar") && ids[i] != self) {
      other = ids[i];
    }
  }
  CHECK(other != 0);
  uint64_t number = call(other, ANNALS_PART_CELL, "say", text_value("not me"));
  wait_for(ANNALS_EVENT_KIND_CALL_REFUSED, NULL);
  CHECK(event.entity == other && event.part == ANNALS_PART_CELL && event.number == number);
  CHECK(event.reason == ANNALS_REASON_CALL_NOT_ALLOWED && event.text.length > 0);
}

static void resume(uint64_t self) {
  annals_client_cut(client);
  wait_for(ANNALS_EVENT_KIND_LOST, NULL);
  CHECK(event.reason == ANNALS_REASON_CLOSED_LOST && event.text.length > 0);
  wait_for(ANNALS_EVENT_KIND_RESUMED, NULL);
  call(self, ANNALS_PART_BASE, "ping", annals_value_new_uint(78));
  wait_for(ANNALS_EVENT_KIND_CALLED, "onPong");
  time_t end = time(NULL) + WITHIN;
  while (annals_client_unconfirmed_calls(client) > 0) {
    CHECK(time(NULL) < end);
    next();
  }
}

static void leave(void) {
  annals_client_leave(client);
  wait_for(ANNALS_EVENT_KIND_ENDED, NULL);
  CHECK(event.reason == ANNALS_REASON_LEFT && annals_client_has_ended(client) && !next());
  annals_client_free(client);
  // Everything that a short life has.
  const annals_event_kind kinds[] = {
      ANNALS_EVENT_KIND_CONNECTED, ANNALS_EVENT_KIND_CONTROLS,      ANNALS_EVENT_KIND_ENTERED,
      ANNALS_EVENT_KIND_REFRESHED, ANNALS_EVENT_KIND_CHANGED,       ANNALS_EVENT_KIND_CALLED,
      ANNALS_EVENT_KIND_LEFT,      ANNALS_EVENT_KIND_SPACE_ENTERED, ANNALS_EVENT_KIND_CALL_REFUSED,
      ANNALS_EVENT_KIND_LOST,      ANNALS_EVENT_KIND_RESUMED,       ANNALS_EVENT_KIND_ENDED,
      ANNALS_EVENT_KIND_DRIVES,
  };
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (!seen[kinds[i]]) {
      fprintf(stderr, "there was no event %u\n", (unsigned)kinds[i]);
      exit(1);
    }
  }
}

int main(int count, char **arguments) {
  CHECK(count == 6);
  annals_error *error = NULL;
  annals_schema *schema = annals_schema_from_folder(arguments[3], &error);
  no_error(error, __LINE__);
  annals_config config = {0};
  config.schema = schema;
  config.login = arguments[1];
  static char authorities[1 << 16];
  FILE *file = fopen(arguments[2], "rb");
  CHECK(file != NULL && fread(authorities, 1, sizeof authorities - 1, file) > 0);
  fclose(file);
  config.authorities = authorities;
  config.server_name = "localhost";
  config.name = arguments[4];
  config.password = arguments[5];
  config.seed = 11;
  client = annals_client_start(&config, &error);
  no_error(error, __LINE__);

  annals_entity avatar = enter();
  read_values(schema, avatar.id);
  refused_here(avatar.id);
  walk(&avatar);
  drive(avatar.id);
  call_methods(avatar.id);
  refused_there(avatar.id);
  resume(avatar.id);
  leave();
  annals_schema_free(schema);
  printf("left\n");
  return 0;
}

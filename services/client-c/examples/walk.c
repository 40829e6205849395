// Logs in to a realm of the sample world, prints what it sees, walks in a circle, says something, reads a property, and
// leaves.
//
//   walk HOST:PORT FINGERPRINT SCHEMA NAME PASSWORD
//
// HOST:PORT and FINGERPRINT are what `annals up` prints; SCHEMA is the file that `annals defs compile` writes.
#include <annals_client.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEP_MS = 100, STEPS = 50 };

// Ends the program if there was an error.
static void check(annals_error *error) {
  if (error != NULL) {
    fprintf(stderr, "walk: %s\n", annals_error_get_text(error));
    annals_error_free(error);
    exit(1);
  }
}

static annals_schema *read_schema(const char *path) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) {
    perror(path);
    exit(1);
  }
  static uint8_t bytes[1 << 20];
  size_t length = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  annals_error *error = NULL;
  annals_schema *schema = annals_schema_decode(bytes, length, &error);
  check(error);
  return schema;
}

// Prints an event. What it points to is valid until the next one.
static void print_event(const annals_event *event) {
  switch (event->kind) {
  case ANNALS_EVENT_KIND_CONNECTED:
  case ANNALS_EVENT_KIND_CONTROLS:
    printf("plays %.*s %llu\n", (int)event->type_name.length, event->type_name.bytes, (unsigned long long)event->entity);
    break;
  case ANNALS_EVENT_KIND_ENTERED:
    printf("sees %.*s %llu\n", (int)event->type_name.length, event->type_name.bytes, (unsigned long long)event->entity);
    break;
  case ANNALS_EVENT_KIND_CHANGED:
    printf("%llu.%.*s changed\n", (unsigned long long)event->entity, (int)event->member.length, event->member.bytes);
    break;
  case ANNALS_EVENT_KIND_CALLED: {
    annals_text said;
    if (annals_value_get_text(annals_value_at(event->args, 0), &said)) {
      printf("%llu %.*s: %.*s\n", (unsigned long long)event->entity, (int)event->member.length, event->member.bytes,
             (int)said.length, said.bytes);
    }
    break;
  }
  case ANNALS_EVENT_KIND_LOST:
  case ANNALS_EVENT_KIND_ENDED:
    printf("%s: %.*s\n", event->kind == ANNALS_EVENT_KIND_LOST ? "lost" : "ended", (int)event->text.length,
           event->text.bytes);
    break;
  default:
    break;
  }
}

static void say(annals_client *client, uint64_t entity, const char *text) {
  annals_error *error = NULL;
  annals_value *argument = annals_value_new_text(text, strlen(text), &error);
  check(error);
  const annals_value *arguments[] = {argument};
  annals_client_call(client, entity, ANNALS_PART_CELL, "say", arguments, 1, NULL, &error);
  annals_value_free(argument);
  check(error);
}

static void print_health(annals_client *client, uint64_t entity) {
  annals_error *error = NULL;
  const annals_value *value = annals_client_property(client, entity, "hp", &error);
  check(error);
  int64_t health;
  if (annals_value_get_int(value, &health)) {
    printf("has %lld health\n", (long long)health);
  }
}

// Prints the events of so many milliseconds. Returns whether the client lives on.
static bool watch(annals_client *client, uint32_t milliseconds) {
  annals_event event;
  annals_error *error = NULL;
  // A game calls it in each frame with 0 instead, until there is no event.
  while (annals_client_poll(client, milliseconds, &event, &error)) {
    print_event(&event);
    milliseconds = 0;
  }
  check(error);
  return !annals_client_has_ended(client);
}

int main(int count, char **arguments) {
  if (count != 6) {
    fprintf(stderr, "usage: walk HOST:PORT FINGERPRINT SCHEMA NAME PASSWORD\n");
    return 2;
  }
  annals_schema *schema = read_schema(arguments[3]);
  annals_config config = {0};
  config.schema = schema;
  config.login = arguments[1];
  config.certificate = arguments[2];
  config.name = arguments[4];
  config.password = arguments[5];
  annals_error *error = NULL;
  annals_client *client = annals_client_start(&config, &error);
  check(error);
  annals_schema_free(schema);

  // The account's entity is not anywhere; a moment later its avatar is, and the player controls that.
  uint64_t self = 0;
  annals_entity avatar = {0};
  while (!avatar.has_place && watch(client, STEP_MS)) {
    if (annals_client_controls(client, &self)) {
      annals_client_entity(client, ANNALS_PART_CELL, self, &avatar);
    }
  }
  for (int step = 0; step < STEPS && watch(client, STEP_MS); step++) {
    float angle = 2 * 3.14159265f * (float)step / STEPS;
    annals_position position = avatar.position;
    position.x += 5 * sinf(angle);
    position.z += 5 * (1 - cosf(angle));
    annals_direction direction = {.yaw = angle, .pitch = 0, .roll = 0};
    annals_client_move(client, position, direction, &error);
    check(error);
    if (step == STEPS / 2) {
      say(client, self, "half way round");
      print_health(client, self);
    }
  }
  annals_client_leave(client);
  while (watch(client, STEP_MS)) {
  }
  annals_client_free(client);
  return 0;
}

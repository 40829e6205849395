//! What a game outside this repository depends on, in one line of its `Cargo.toml`.
//!
//! Responsible for: giving a game the crates that its behaviour and its generated code use ([`def`], [`event`],
//! [`ids`], [`node`], [`client`]), the two services that contain it ([`base`], [`cell`]), and a realm for its tests
//! ([`testing`]). Not responsible for: anything that those crates do.
//!
//! Generated code names these crates through this one with `annals defs generate --through annals_game`.
//!
//! # Behaviour reference
//!
//! Everything that behaviour can do, by task. Each link leads to what a function does, its units, the errors with which
//! it is denied, and an example. Examples run in the world of `tests/reference/defs`, in a
//! [`TestRealm`](testing::TestRealm).
//!
//! A game implements the traits that [are generated](#hooks) for each part of each entity type. A hook or a method gets
//! `own`, the part; `own.context` is its [`Context`](node::Context), and has all functions below unless another type is
//! named. Generated functions are shorter and typed, and do the same: `own.set_hp(7)?` is
//! `own.context.set("hp", …)?`.
//!
//! Rules that hold for all of them:
//!
//! - Nothing waits. What takes time is answered in a later hook, by a number (`then`) and bytes (`note`) that the
//!   caller chose. Both are state of the part, and survive its process.
//! - Everything is an event in the log first, and is sent or shown after that.
//! - A denied operation changes nothing. [`Denied`](node::Denied) says why, in words for developers. Any function that
//!   records something may be denied as [`Denied::Spent`](node::Denied::Spent): one input may record a few MiB.
//! - A panic ends a method or hook like an error: what it did before stays, the process log has the place, and the owner
//!   continues. In a game's tests, a panic fails the test.
//! - Times are milliseconds of game time, distances metres, speeds m/s, angles radians, unless something else is said.
//!
//! ## The part itself
//!
//! | | |
//! |---|---|
//! | [`entity`](node::Context::entity), [`part`](node::Context::part), [`entity_type`](node::Context::entity_type) | id, part and type |
//! | [`mailbox`](node::Context::mailbox) | address of one of its parts |
//! | [`database`](node::Context::database), [`client`](node::Context::client), [`place`](node::Context::place) | stored entity, client session, place |
//! | [`now`](node::Context::now), [`wall`](node::Context::wall) | game time, wall-clock time |
//! | [`roll`](node::Context::roll) | a random number |
//! | [`report`](node::Context::report) | write a denial to the process log |
//! | [`expect_part`](node::Context::expect_part) | check the type of a part, as generated code does |
//!
//! ## Properties
//!
//! | | |
//! |---|---|
//! | [`get`](node::Context::get), [`read`](node::Context::read) | read one: `own.hp()?` |
//! | [`set`](node::Context::set), [`write`](node::Context::write) | assign one: `own.set_hp(7)?` |
//! | [`set_at`](node::Context::set_at), [`append`](node::Context::append), [`splice`](node::Context::splice), [`change`](node::Context::change) | change a part of one: `own.edit_bag()…` |
//! | [`ArrayEdit`](node::typed::ArrayEdit): [`len`](node::typed::ArrayEdit::len), [`is_empty`](node::typed::ArrayEdit::is_empty), [`get`](node::typed::ArrayEdit::get), [`set`](node::typed::ArrayEdit::set), [`at`](node::typed::ArrayEdit::at), [`push`](node::typed::ArrayEdit::push), [`insert`](node::typed::ArrayEdit::insert), [`remove`](node::typed::ArrayEdit::remove), [`clear`](node::typed::ArrayEdit::clear), [`splice`](node::typed::ArrayEdit::splice) | the editor of an array |
//! | [`ValueEdit`](node::typed::ValueEdit): [`get`](node::typed::ValueEdit::get), [`set`](node::typed::ValueEdit::set) | the editor of a value without parts |
//! | [`Spot`](node::typed::Spot): [`new`](node::typed::Spot::new), [`part`](node::typed::Spot::part), [`read`](node::typed::Spot::read), [`write`](node::typed::Spot::write) | any position in a property |
//! | [`load`](node::Context::load), [`save`](node::Context::save) | some properties as a plain struct, and its changes |
//! | [`cell_data`](node::Context::cell_data) | those of a cell part that has ended, on the base part |
//! | [`personal`](node::Context::personal), [`set_personal`](node::Context::set_personal), [`read_personal`](node::Context::read_personal), [`write_personal`](node::Context::write_personal) | sealed data about a person |
//!
//! ## Calling
//!
//! | | |
//! |---|---|
//! | [`call`](node::Context::call) | call a part anywhere, once: `avatar::CellMailbox(mailbox).heal(own.context, 5)?` |
//! | [`ask`](node::Context::ask), [`Wait::ask`](node::typed::Wait::ask), [`Wait::then`](node::typed::Wait::then) | call and await the answer: `ask_price(…)`; then [`replied`](node::Behaviour::replied) |
//! | [`returned`](node::typed::returned), [`Returned::from_values`](node::typed::Returned::from_values) | read the answer in `replied` |
//! | [`Returned::into_values`](node::typed::Returned::into_values), [`answer`](node::Context::answer) | give one |
//! | [`Later`](node::typed::Later): [`new`](node::typed::Later::new), [`to_note`](node::typed::Later::to_note), [`from_note`](node::typed::Later::from_note), [`answer`](node::typed::Later::answer) | answer later |
//! | [`Caller::client`](node::Caller::client) | whether a client called, and which |
//! | [`invoke`](node::Context::invoke) | call the own client, the others, or all: `own.to_own_client()`, `to_other_clients()`, `to_all_clients()` |
//! | [`invoke_in_view`](node::Context::invoke_in_view), [`Recipients::invoke`](node::typed::Recipients::invoke) | call one client, with a method of another entity: `monster::Clients::in_view(…)` |
//! | [`service`](node::Context::service) | find a service: `note_store::BaseMailbox::any(own.context)?` |
//! | [`calls_lost`](node::Behaviour::calls_lost) | the receiver has ended |
//!
//! ## Creating and destroying
//!
//! | | |
//! |---|---|
//! | [`create_base`](node::Context::create_base) | a base part on this owner: `BaseMailbox::create` |
//! | [`create_base_anywhere`](node::Context::create_base_anywhere), [`Wait::create_anywhere`](node::typed::Wait::create_anywhere) | on the owner with the fewest entities |
//! | [`create_base_beside`](node::Context::create_base_beside), [`Wait::create_beside`](node::typed::Wait::create_beside) | on the home of another entity |
//! | [`create_cell_only`](node::Context::create_cell_only) | an entity without a base part: `CellMailbox::create_alone` |
//! | [`request`](node::Context::request) of [`CreateCell`](node::Request::CreateCell), [`CreateCellNear`](node::Request::CreateCellNear), [`CreateCellInNewSpace`](node::Request::CreateCellInNewSpace), [`DestroyCell`](node::Request::DestroyCell), [`Destroy`](node::Request::Destroy) | a cell part of a base part; the end of it, or of the entity |
//! | [`created`](node::Behaviour::created), [`destroyed`](node::Behaviour::destroyed), [`cell_gained`](node::Behaviour::cell_gained), [`cell_lost`](node::Behaviour::cell_lost), [`request_denied`](node::Behaviour::request_denied) | what becomes of it |
//! | [`bootstrap`](node::Behaviour::bootstrap) | the first entity of a realm |
//! | [`zones`](node::Context::zones), [`load_zone`](node::Context::load_zone) | what authors have placed |
//!
//! ## Moving
//!
//! | | |
//! |---|---|
//! | [`move_to`](node::Context::move_to) | to another place of its space, at once |
//! | [`teleport`](node::Context::teleport), [`teleport_near`](node::Context::teleport_near), [`Request::Teleport`](node::Request::Teleport) | to any space; then [`teleported`](node::Behaviour::teleported) or [`teleport_failed`](node::Behaviour::teleport_failed) |
//! | [`move_to_point`](node::Context::move_to_point), [`move_along`](node::Context::move_along), [`patrol`](node::Context::patrol), [`move_to_entity`](node::Context::move_to_entity), [`turn_to`](node::Context::turn_to) | controllers that move it; [`controller`](node::Behaviour::controller) gets their events. [`Gait`](event::Gait) says how fast |
//! | [`add_proximity`](node::Context::add_proximity) | a trap |
//! | [`board`](node::Context::board), [`alight`](node::Context::alight) | ride another entity |
//! | [`controllers`](node::Context::controllers), [`cancel_controller`](node::Context::cancel_controller), [`stop_moving`](node::Context::stop_moving) | list and end them |
//! | [`movement_control`](node::Context::movement_control), [`set_driver`](node::Context::set_driver), [`set_top_speed`](node::Context::set_top_speed), [`client_moves`](node::Behaviour::client_moves) | who moves it, and how fast |
//!
//! ## Who is around, and who sees whom
//!
//! | | |
//! |---|---|
//! | [`entities_in_range`](node::Context::entities_in_range), [`entities_in`](node::Context::entities_in) | find entities in a [`Shape`](node::Shape) |
//! | [`look_at`](node::Context::look_at), [`GhostView`](node::GhostView): [`get`](node::GhostView::get), [`mailbox`](node::GhostView::mailbox), [`new`](node::GhostView::new) | read one; [`ghost_changed`](node::Behaviour::ghost_changed) |
//! | [`aoi_radius`](node::Context::aoi_radius), [`set_aoi_radius`](node::Context::set_aoi_radius), [`reset_aoi_radius`](node::Context::reset_aoi_radius) | how far its client sees |
//! | [`manual_aoi`](node::Context::manual_aoi), [`add_to_manual_aoi`](node::Context::add_to_manual_aoi), [`remove_from_manual_aoi`](node::Context::remove_from_manual_aoi) | entities that it sees anywhere |
//!
//! ## Spaces
//!
//! | | |
//! |---|---|
//! | [`CreateCellInNewSpace`](node::Request::CreateCellInNewSpace), [`space_key`](node::space_key) | a space of its own for an entity; who has which |
//! | [`space_data`](node::Context::space_data), [`set_space_data`](node::Context::set_space_data), [`remove_space_data`](node::Context::remove_space_data) | data that all cells and clients of a space have |
//! | [`time_of_day`](node::Context::time_of_day), [`set_time_of_day`](node::Context::set_time_of_day) | its time of day |
//! | [`space_geometry`](node::Context::space_geometry), [`add_space_geometry`](node::Context::add_space_geometry), [`remove_space_geometry`](node::Context::remove_space_geometry) | resources that clients load |
//! | [`destroy_space`](node::Context::destroy_space), [`open_space`](node::Context::open_space), [`Request::OpenSpace`](node::Request::OpenSpace), [`space_gone`](node::Behaviour::space_gone) | its end and its next use |
//!
//! ## Timers
//!
//! [`set_timer`](node::Context::set_timer), [`cancel_timer`](node::Context::cancel_timer),
//! [`timers`](node::Context::timers), and the hook [`timer`](node::Behaviour::timer).
//!
//! ## Storing and looking up
//!
//! | | |
//! |---|---|
//! | [`store`](node::Context::store), [`store_then`](node::Context::store_then), [`Request::Store`](node::Request::Store) on a cell part | write the entity to the database |
//! | [`find_stored`](node::Context::find_stored) | find stored entities by an indexed property |
//! | [`begin_stored`](node::Context::begin_stored) | activate one |
//! | [`delete`](node::Context::delete) | delete it for ever |
//! | [`learned`](node::Behaviour::learned) | the answers |
//!
//! ## Items, trades, ledger
//!
//! | | |
//! |---|---|
//! | [`ledger`](node::Context::ledger) | holdings, open trades and gifts, unanswered orders |
//! | [`order`](node::Context::order) | any [`Order`](event::ledger::Order): make, destroy, move and equip assets |
//! | [`give`](node::Context::give) | a gift |
//! | [`propose`](node::Context::propose), [`offer`](node::Context::offer), [`withdraw`](node::Context::withdraw), [`accept`](node::Context::accept), [`cancel`](node::Context::cancel) | a trade |
//! | [`holdings_known`](node::Behaviour::holdings_known), [`booked`](node::Behaviour::booked) | what the ledger did |
//!
//! ## Global data and registry
//!
//! | | |
//! |---|---|
//! | [`global`](node::Context::global), [`globals`](node::Context::globals), [`set_global`](node::Context::set_global), [`remove_global`](node::Context::remove_global) | values that all owners have |
//! | [`follows_global_data`](node::Behaviour::follows_global_data), [`global_changed`](node::Behaviour::global_changed) | their changes |
//! | [`register_globally`](node::Context::register_globally), [`deregister_globally`](node::Context::deregister_globally), [`global_base`](node::Context::global_base) | one entity per key in the realm: [`Request::Register`](node::Request::Register), [`Request::Deregister`](node::Request::Deregister) |
//!
//! ## Clients
//!
//! | | |
//! |---|---|
//! | [`Request::GiveClient`](node::Request::GiveClient) | hand the client to another entity, on any base owner |
//! | [`Request::CloseClient`](node::Request::CloseClient) | close its connection. An account is banned by operators (`annals realm ban`) |
//! | [`Request::InvokeFor`](node::Request::InvokeFor) | made by `invoke_in_view` |
//! | [`client_attached`](node::Behaviour::client_attached), [`client_lost`](node::Behaviour::client_lost) | it came, or is gone for good |
//! | [`stream_to_client`](node::Context::stream_to_client), [`stream_file_to_client`](node::Context::stream_file_to_client), [`cancel_download`](node::Context::cancel_download) | downloads |
//!
//! ## Outside the realm
//!
//! [`call_outside`](node::Context::call_outside) calls a service over HTTP or NATS;
//! [`read_answer`](node::outbound::read_answer) reads what [`replied`](node::Behaviour::replied) gets.
//!
//! ## Hooks
//!
//! [`Behaviour`](node::Behaviour) has all hooks. For each part, `annals defs generate` writes a trait with the same hooks
//! and a function per declared method, for example `avatar::CellBehaviour`. All hooks have defaults.
//!
//! Their order in the life of an entity with both parts:
//!
//! 1. Base part: [`created`](node::Behaviour::created), [`client_attached`](node::Behaviour::client_attached),
//!    [`holdings_known`](node::Behaviour::holdings_known) of a stored entity, in any order after `created`.
//! 2. Cell part: `created`, then [`cell_gained`](node::Behaviour::cell_gained) of the base part.
//! 3. Either part, any number of times: methods ([`call`](node::Behaviour::call)), `timer`, `replied`, `learned`,
//!    `controller`, `teleported`, `booked`. After a take-over [`restored`](node::Behaviour::restored), then
//!    [`app_ready`](node::Behaviour::app_ready) once the owner has the map, as after the start of a realm.
//! 4. Cell part: `destroyed`; base part: [`cell_lost`](node::Behaviour::cell_lost), then `destroyed`.
//!
//! At a stop of the realm [`app_shutting_down`](node::Behaviour::app_shutting_down), then
//! [`app_shut_down`](node::Behaviour::app_shut_down) with 0, 1 and 2.
//!
//! ## Testing
//!
//! [`TestRealm`](testing::TestRealm) is a realm in one test:
//!
//! | | |
//! |---|---|
//! | [`open`](testing::TestRealm::open), [`new`](testing::TestRealm::new) | from a folder of definitions, or a compiled schema |
//! | [`join`](testing::TestRealm::join), [`join_as`](testing::TestRealm::join_as), [`entered`](testing::TestRealm::entered), [`lose`](testing::TestRealm::lose), [`cut_off`](testing::TestRealm::cut_off), [`reconnect`](testing::TestRealm::reconnect), [`forget_players`](testing::TestRealm::forget_players), [`sessions`](testing::TestRealm::sessions) | players |
//! | [`call`](testing::TestRealm::call), [`try_call`](testing::TestRealm::try_call), [`stand`](testing::TestRealm::stand), [`drive`](testing::TestRealm::drive), [`ask_base`](testing::TestRealm::ask_base) | what clients and other entities do |
//! | [`seen`](testing::TestRealm::seen), [`position`](testing::TestRealm::position), [`drives`](testing::TestRealm::drives), [`read`](testing::TestRealm::read), [`received`](testing::TestRealm::received) | what a client has |
//! | [`pass`](testing::TestRealm::pass), [`until`](testing::TestRealm::until), [`millis`](testing::TestRealm::millis) | time |
//! | [`crash`](testing::TestRealm::crash), [`announce`](testing::TestRealm::announce) | a process is lost; the realm stops |
//! | [`outbound`](testing::TestRealm::outbound), [`answer_outbound`](testing::TestRealm::answer_outbound) | the world outside |
//! | [`state`](testing::TestRealm::state), [`count`](testing::TestRealm::count), [`batches`](testing::TestRealm::batches), [`folded`](testing::TestRealm::folded), [`base_counters`](testing::TestRealm::base_counters) | the owners and their logs |

pub mod testing;

pub use annals_client as client;
pub use annals_def as def;
pub use annals_event as event;
pub use annals_ids as ids;
pub use annals_node as node;

pub use annals_host::service::{FIRST_SPACE, base, cell};

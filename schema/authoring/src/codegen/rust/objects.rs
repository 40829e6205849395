//! User data objects: a module with a struct for each type that server parts read.

use annals_def::{Domain, Field, Schema, UserDataObject};

use super::{shortened, spelling::spelled};
use crate::codegen::{naming::Scope, shapes::Shapes, text::Text};

/// Fields that every object has.
const PLACED: [&str; 3] = ["guid", "position", "direction"];

/// A user data object type with its names in code.
pub(super) struct NamedObject<'s> {
    object: &'s UserDataObject,
    /// Its position among the types.
    kind: usize,
    /// The name of its module.
    pub(super) module: String,
    /// The name of its struct.
    name: String,
    fields: Vec<String>,
}

/// The types of which server parts read objects. `modules` has the names of modules that are taken.
pub(super) fn named<'s>(schema: &'s Schema, shapes: &Shapes, modules: &mut Scope) -> Vec<NamedObject<'s>> {
    let kinds = schema.user_data_objects().iter().enumerate();
    let read = kinds.filter(|(_, object)| object.domain != Domain::Client);
    let name = |(kind, object): (usize, &'s UserDataObject)| {
        let mut fields = Scope::with(&PLACED);
        NamedObject {
            object,
            kind,
            module: modules.snake(&object.name),
            name: shapes.scope().clone().pascal(&object.name),
            fields: object
                .properties
                .iter()
                .map(|field| fields.snake(&field.name))
                .collect(),
        }
    };
    read.map(name).collect()
}

impl NamedObject<'_> {
    /// Documentation of the module.
    pub(super) fn about(&self) -> String {
        format!("`{}`, a user data object type.", self.object.name)
    }

    /// The content of the module.
    pub(super) fn write(&self, shapes: &Shapes) -> String {
        let mut text = Text::at(1);
        let name = &self.name;
        text.doc("An object that an author has placed in a zone.");
        text.line("#[derive(Clone, Debug, PartialEq)]");
        text.open(&format!("pub struct {name} {{"));
        text.doc("The reference to it.");
        text.line("pub guid: UdoRef,");
        text.doc("Its position, in any space where its zone is loaded.");
        text.line("pub position: Position,");
        text.doc("Its direction.");
        text.line("pub direction: annals_ids::Direction,");
        for (field, field_name) in self.fields() {
            text.doc(&format!("`{}`: {}", field.name, shortened(&field.data_type)));
            text.line(&format!("pub {field_name}: {},", spelled(&field.data_type, shapes)));
        }
        text.close("}");
        text.gap();
        text.open(&format!("impl {name} {{"));
        text.doc("A copy of the object to which a reference refers; `None` if it is in no zone, or of another type.");
        let parameters = ["zones: &annals_def::Zones", "reference: UdoRef"].map(str::to_owned);
        text.function("pub fn find", &parameters, "Option<Self>", '{');
        text.line("Self::of(zones.object(reference)?)");
        text.close("}");
        text.gap();
        text.doc("Copies of the objects of this type in a zone, in the order of its file.");
        let parameters = ["zone: &annals_def::Zone".to_owned()];
        text.function("pub fn all_in", &parameters, "Vec<Self>", '{');
        text.line("zone.objects.iter().filter_map(Self::of).collect()");
        text.close("}");
        text.gap();
        self.write_conversion(&mut text);
        text.close("}");
        text.finish()
    }

    fn write_conversion(&self, text: &mut Text) {
        let parameters = ["object: &annals_def::PlacedObject".to_owned()];
        text.function("fn of", &parameters, "Option<Self>", '{');
        text.open(&format!("if object.kind != {} {{", self.kind));
        text.line("return None;");
        text.close("}");
        if !self.fields.is_empty() {
            text.line("let mut values = object.properties.iter();");
        }
        text.open("Some(Self {");
        for field in PLACED {
            text.line(&format!("{field}: object.{field},"));
        }
        for field in &self.fields {
            text.line(&format!("{field}: Typed::from_value(values.next()?).ok()?,"));
        }
        text.close("})");
        text.close("}");
    }

    fn fields(&self) -> impl Iterator<Item = (&Field, &String)> {
        self.object.properties.iter().zip(&self.fields)
    }
}

//! The path from a document's root to one of its values.
//!
//! It is found by searching for the value's span, so that rules need not track it for findings they do not make. The search is
//! binary: an object at the size limit may have tens of thousands of findings.

use super::{Document, Kind, Member, Span, Value, escape};

/// One step on the way down.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PathStep<'d, 't> {
    /// To an element of a list, by its number.
    Element(usize, &'d Value<'t>),
    /// To the value of a member.
    Member(&'d Member<'t>),
    /// To the key of a member.
    Key(&'d Member<'t>),
}

impl<'t> Document<'t> {
    /// The steps to the value or key at a span of this document; to the innermost value around it where it is neither.
    pub(crate) fn path_to(&self, span: Span) -> Vec<PathStep<'_, 't>> {
        let mut path = Vec::new();
        let mut here = &self.root;
        loop {
            let step = match &here.kind {
                Kind::Array(elements) => {
                    let number = elements.partition_point(|element| element.span.start <= span.start);
                    let element = number.checked_sub(1).and_then(|number| Some((number, elements.get(number)?)));
                    element
                        .filter(|(_, element)| element.span.contains(span))
                        .map(|(number, element)| (PathStep::Element(number, element), Some(element)))
                }
                Kind::Object(members) => {
                    let number = members.partition_point(|member| member.key_span.start <= span.start);
                    let member = number.checked_sub(1).and_then(|number| members.get(number));
                    member.and_then(|member| {
                        if member.key_span.contains(span) {
                            Some((PathStep::Key(member), None))
                        } else {
                            member.value.span.contains(span).then_some((PathStep::Member(member), Some(&member.value)))
                        }
                    })
                }
                _ => None,
            };
            // A span equal to `here` has been reached when no child holds it.
            let Some((step, below)) = step else { return path };
            path.push(step);
            let Some(below) = below else { return path };
            here = below;
        }
    }

    /// The JSON pointer of the value or key at a span of this document.
    pub fn pointer_to(&self, span: Span) -> String {
        let mut pointer = String::new();
        for step in self.path_to(span) {
            pointer.push('/');
            match step {
                PathStep::Element(number, _) => pointer.push_str(&number.to_string()),
                PathStep::Member(member) | PathStep::Key(member) => pointer.push_str(&escape(&member.key)),
            }
        }
        pointer
    }
}

//! Carries out the outputs of an owner's core.

use std::sync::Arc;

use annals_ids::OwnerId;
use annals_node::{Input, Output, Role};
use annals_wire::control::{DirectorAsk, IdBlock, MoreIds};

use super::{Command, Held, Notice, PAUSE, Wires};
use crate::{clock, log::LogCore, process::Process, telemetry::Span, traced_owner::Leaving, waiting::Wait};

/// Sends all outputs, and the packets that are due.
pub(super) async fn send_outputs<R>(
    process: &Arc<Process>,
    held: &mut Held<R>,
    wires: &Wires<R::Input>,
    mut poll: impl FnMut(&mut Held<R>) -> Option<Output>,
) where
    R: Role,
    R::Input: Send + 'static,
{
    let mut for_service = Vec::new();
    while let Some(output) = poll(held) {
        if let Some(output) = send(process, held, output, wires).await {
            for_service.push(output);
        }
    }
    if !for_service.is_empty() {
        // If the service has ended, this task ends too.
        let _ = wires
            .notices
            .send(Notice::Outputs(LogCore::owner(held), for_service))
            .await;
    }
    while let Some((to, bytes)) = held.packets.take_due(clock::mono()) {
        publish(process, to, (bytes, None)).await;
    }
}

/// Publishes a packet to an owner. Errors are ignored: messages that must arrive are resent.
async fn publish(process: &Process, to: OwnerId, (bytes, headers): (Vec<u8>, Option<async_nats::HeaderMap>)) {
    let (client, subject) = (process.bus.client(), process.subjects.owner(to));
    let published = match headers {
        None => client.publish(subject, bytes.into()).await,
        Some(headers) => client.publish_with_headers(subject, headers, bytes.into()).await,
    };
    if let Err(error) = published {
        tracing::debug!(owner = %to, %error, "could not send messages to the owner");
    }
}

/// Carries out an output, or returns it if it is for the service.
async fn send<R>(process: &Arc<Process>, held: &mut Held<R>, output: Output, wires: &Wires<R::Input>) -> Option<Output>
where
    R: Role,
    R::Input: Send + 'static,
{
    match output {
        Output::Outbound(call) => {
            let (process, inputs, outbound) = (Arc::clone(process), wires.own.clone(), Arc::clone(&wires.outbound));
            tokio::spawn(async move {
                if let Some(answer) = outbound.perform(&process, call).await {
                    // If the holder has ended, the next one performs the call again.
                    let _ = inputs.send(Command::Core(Input::Outbound(answer))).await;
                }
            });
        }
        Output::Send { to, envelope } => {
            let traced = held.traced.leave(&envelope.message);
            let Some(Leaving { headers, spans }) = traced else {
                if let Some(bytes) = held.packets.add(clock::mono(), to, &envelope.message) {
                    publish(process, to, (bytes, None)).await;
                }
                return None;
            };
            // The headers are of this message alone.
            if let Some(before) = held.packets.take(to) {
                publish(process, to, (before, None)).await;
            }
            let alone = held.packets.alone(&envelope.message);
            publish(process, to, (alone, Some(headers))).await;
            spans.into_iter().for_each(Span::end);
        }
        Output::WantIds => {
            let owner = LogCore::owner(held);
            let (process, inputs) = (Arc::clone(process), wires.own.clone());
            let mut wait = Wait::new(
                format!("entity ids for owner {owner}"),
                "it cannot create entities once its ids run out; check that annals-director runs",
            );
            tokio::spawn(async move {
                loop {
                    match process
                        .ask::<IdBlock>(DirectorAsk::MoreIds(MoreIds { owner: owner.0 }))
                        .await
                    {
                        Ok(block) => {
                            wait.ends();
                            // If the holder has ended, no ids are needed.
                            let _ = inputs.send(Command::Core(Input::Ids(block.from..block.to))).await;
                            return;
                        }
                        Err(error) => wait.lasts(error),
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            });
        }
        other => return Some(other),
    }
    None
}

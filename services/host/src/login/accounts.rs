//! Verifies what a client shows, and finds or creates the account.

use annals_db::accounts;
use annals_ids::DatabaseId;
use annals_login::{Authenticated, Unavailable, Verdict, Wrong};
use annals_store::layout::database;
use annals_wire::{
    client::{Credentials, LoginRefusal, Password, Token},
    control::{AccountFound, CreateAccount, DbAsk, FindAccount},
};

use super::Asker;
use crate::{
    authentication::{Answered, Authenticator, Question, Tokens, ask},
    config::AccountCreation,
    passwords::PasswordError,
    telemetry::Chain,
};

impl Asker {
    pub(super) async fn verify(&self, credentials: Credentials) -> Result<Verdict, Unavailable> {
        match (&self.authenticator, credentials) {
            (Authenticator::BuiltIn, Credentials::Password { name, password }) => self.compare(name, password).await,
            (Authenticator::BuiltIn, Credentials::Registration { name, password }) => {
                self.register(name, password).await
            }
            (Authenticator::Service(subject), Credentials::Password { name, password }) => {
                self.ask_service(subject, &name, &password).await
            }
            (Authenticator::Tokens(tokens), Credentials::Token(token)) => self.check(tokens, token).await,
            (_, Credentials::Registration { .. }) => Ok(Verdict::Refused(LoginRefusal::NoRegistration)),
            (_, Credentials::Password { .. } | Credentials::Token(_)) => {
                Ok(Verdict::Refused(LoginRefusal::OtherCredentials))
            }
        }
    }

    /// Compares a password. A name without an account gets one with this password, if the realm is open and the name is
    /// possible.
    async fn compare(&self, name: String, password: Password) -> Result<Verdict, Unavailable> {
        let found = self.find(&name).await?;
        if found.database != 0 {
            return self.compare_with(found, name, password).await;
        }
        if self.creation != AccountCreation::Open {
            // As long as a comparison takes, so that the time does not reveal which names exist.
            self.passwords.hash(password.0).await.map_err(not_compared)?;
            return Ok(Verdict::Wrong(Wrong::Password));
        }
        self.create_with(name, password, Wrong::Password).await
    }

    /// Creates an account. The client may repeat its request: it has the password then.
    async fn register(&self, name: String, password: Password) -> Result<Verdict, Unavailable> {
        if self.creation == AccountCreation::Closed {
            return Ok(Verdict::Refused(LoginRefusal::NoRegistration));
        }
        let found = self.find(&name).await?;
        if found.database == 0 {
            return self.create_with(name, password, Wrong::Taken).await;
        }
        Ok(match self.compare_with(found, name, password).await? {
            Verdict::Wrong(_) => Verdict::Wrong(Wrong::Taken),
            verdict => verdict,
        })
    }

    async fn compare_with(
        &self,
        found: AccountFound,
        name: String,
        password: Password,
    ) -> Result<Verdict, Unavailable> {
        if found.password.is_empty() {
            // It was made for a token or a service, and has none.
            self.passwords.hash(password.0).await.map_err(not_compared)?;
            return Ok(Verdict::Wrong(Wrong::Password));
        }
        let fits = self.passwords.fits(password.0, found.password.clone()).await;
        Ok(match fits.map_err(not_compared)? {
            true => self.admitted(found, name),
            false => Verdict::Wrong(Wrong::Password),
        })
    }

    async fn create_with(&self, name: String, password: Password, wrong: Wrong) -> Result<Verdict, Unavailable> {
        if !accounts::can_be_named(&name) {
            return Ok(Verdict::Refused(LoginRefusal::UnfitName));
        }
        let hash = self.passwords.hash(password.0.clone()).await.map_err(not_compared)?;
        let created = self.create(&name, hash.clone()).await?;
        // A concurrent log-in may have created it, with another password.
        let fits = created.password == hash
            || self
                .passwords
                .fits(password.0, created.password.clone())
                .await
                .map_err(not_compared)?;
        Ok(match fits {
            true => self.admitted(created, name),
            false => Verdict::Wrong(wrong),
        })
    }

    async fn ask_service(&self, subject: &str, name: &str, password: &Password) -> Result<Verdict, Unavailable> {
        let question = Question::new(&self.process.realm, name, password);
        match ask(&self.process.bus, subject, &question).await {
            Ok(Answered::Accepted(account)) => self.account_named(account).await,
            Ok(Answered::Refused) => Ok(Verdict::Wrong(Wrong::Password)),
            Ok(Answered::Banned(ban)) => Ok(Verdict::Banned(ban)),
            Err(error) => {
                let error = Chain(&error);
                tracing::warn!(subject, %error, "the service that authenticates players gave no answer");
                Err(Unavailable)
            }
        }
    }

    async fn check(&self, tokens: &Tokens, token: Token) -> Result<Verdict, Unavailable> {
        let tokens = tokens.clone();
        let checked = tokio::task::spawn_blocking(move || tokens.verify(&token)).await;
        match checked.map_err(|_| Unavailable)? {
            Ok(name) => self.account_named(name).await,
            Err(error) => {
                tracing::info!(%error, "refused a token");
                Ok(Verdict::Wrong(Wrong::Token))
            }
        }
    }

    /// The account of a client that something else has authenticated.
    async fn account_named(&self, name: String) -> Result<Verdict, Unavailable> {
        let found = self.find(&name).await?;
        if found.database != 0 {
            return Ok(self.admitted(found, name));
        }
        if self.creation != AccountCreation::Open {
            return Ok(Verdict::Refused(LoginRefusal::NoAccount));
        }
        if !accounts::can_be_named(&name) {
            return Ok(Verdict::Refused(LoginRefusal::UnfitName));
        }
        let created = self.create(&name, String::new()).await?;
        Ok(self.admitted(created, name))
    }

    async fn find(&self, name: &str) -> Result<AccountFound, Unavailable> {
        let name = database::hashed_name(&self.name_key, name);
        self.account(DbAsk::FindAccount(FindAccount { name })).await
    }

    /// Creates an account, or finds the one that was created meanwhile. The password is hashed; empty if it has none.
    async fn create(&self, name: &str, password: String) -> Result<AccountFound, Unavailable> {
        let entity_type = accounts::entity_type(&self.process.schema, name)
            .ok_or(Unavailable)?
            .name
            .clone();
        let name = database::hashed_name(&self.name_key, name);
        let created = self.account(DbAsk::CreateAccount(CreateAccount {
            name,
            password,
            entity_type,
        }));
        let created = created.await?;
        tracing::info!(account = %DatabaseId(created.database), "an account was created");
        Ok(created)
    }

    /// db's answer about an account. A failed look-up is an error, not a missing account.
    async fn account(&self, ask: DbAsk) -> Result<AccountFound, Unavailable> {
        let answer = self.db::<AccountFound>(ask).await?;
        if !answer.failed.is_empty() {
            tracing::warn!(reason = answer.failed, "could not look up the account");
            return Err(Unavailable);
        }
        Ok(answer)
    }

    /// The verdict for the right credentials of an account.
    fn admitted(&self, found: AccountFound, name: String) -> Verdict {
        let account = DatabaseId(found.database);
        match found.ban {
            None => Verdict::Good(Authenticated {
                account,
                waits: !self.exempt.contains(&name),
                name,
            }),
            Some(ban) => {
                tracing::info!(%account, "refused a log-in: the account is banned");
                Verdict::Banned(ban.into())
            }
        }
    }
}

#[allow(clippy::needless_pass_by_value, reason = "map_err passes the error by value")]
fn not_compared(error: PasswordError) -> Unavailable {
    tracing::error!(%error, "could not compare a password");
    Unavailable
}
